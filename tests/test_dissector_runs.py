"""Captures of runs, as the dissector reads them."""

from pathlib import Path

import pytest

import rampmeter as rm

from .dissection import FILTERS, PORT, TRANSPORTS, needs_tshark, numbers, rows

pytestmark = needs_tshark

PLAN = """\
[topology]
kind = "star"
hosts = 4
[transport]
name = "{transport}"
[workload]
pattern = "all-to-all"
sizes = "imc10"
load = 0.5
flows = 30
[run]
capture = "run.pcapng"
"""


class TestSimulation:
    @pytest.mark.parametrize("transport", TRANSPORTS)
    def test_captures_of_runs_are_read_without_complaint(
        self, transport: str, tmp_path: Path
    ) -> None:
        run = rm.run(rm.Plan(PLAN.format(transport=transport)), out=tmp_path, quiet=True)
        capture = tmp_path / "run.pcapng"
        checks = ("-o", "ip.check_checksum:TRUE")
        names = [
            "_ws.expert.message",
            f"{FILTERS[transport]}.type",
            "rampmeter.src",
            "rampmeter.dst",
        ]
        names += ["frame.interface_name", "frame.packet_flags_direction", "ip.src", "ip.dst"]
        found = rows(capture, names, *checks)
        assert len(found) == run.manifest["capture"]["packets"] > 0
        assert not run.manifest["capture"]["limit_reached"]
        for row in found:
            assert row["_ws.expert.message"] == []
            assert len(row[f"{FILTERS[transport]}.type"]) == 1
            src, dst = numbers(row["rampmeter.src"] + row["rampmeter.dst"])
            assert row["ip.src"] + row["ip.dst"] == [f"10.77.0.{1 + n}" for n in (src, dst)]
            here = dst if numbers(row["frame.packet_flags_direction"]) == [1] else src
            assert row["frame.interface_name"] == [f"h{here}" if here < 4 else f"a{here - 4}"]

    def test_classes_and_times_are_those_of_the_run(self, tmp_path: Path) -> None:
        run = rm.run(rm.Plan(PLAN.format(transport="dcpim")), out=tmp_path, quiet=True)
        capture = tmp_path / "run.pcapng"
        names = ["frame.time_epoch", "rampmeter.kind", "ip.dsfield.dscp", "udp.dstport"]
        found = rows(capture, names, "-Y", "frame.packet_flags_direction == 2")
        times = [float(row["frame.time_epoch"][0]) for row in found]
        assert times == sorted(times)
        first = int(run.flows["arrival_ps"].to_numpy().min())
        assert times[0] == pytest.approx(first / 1e12, abs=1e-9)
        for row in found:
            dscp, port = numbers(row["ip.dsfield.dscp"] + row["udp.dstport"])
            assert dscp % 8 == 0
            assert port == (PORT if dscp == 56 else PORT + 1)
            assert numbers(row["rampmeter.kind"]) == [2] or dscp <= 56
