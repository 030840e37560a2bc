"""Several transports in one network, each for the messages of a tenant."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rampmeter as rm
from rampmeter.choices.naming import TransportChoice
from rampmeter.endpoints import StopAndWait
from rampmeter.results import tables
from rampmeter.running import runner
from rampmeter.running.batch_flows import count_undelivered
from rampmeter.running.runner import Batch, Job, JobOutcome
from rampmeter.sweeps.table import SweepOverrides, sweep_of
from rampmeter.testbed.experiment import bed_of

from .conftest import write_results

DUMBBELL: dict[str, Any] = {
    **{"kind": "dumbbell", "hosts-per-side": 4},
    **{"access-gbps": 10.0, "core-gbps": 10.0},
}
SHARING = ("dcpim", "phost", "tcp", "dctcp", "pias", "homa", "homa-aeolus", "sird")


def run(transports: list[Any], rows: list[str], folder: Path, **parts: Any) -> rm.Run:
    """Runs the flows of `rows`: microseconds, source, destination, bytes, tenant."""
    file = folder / "flows.csv"
    file.write_text("\n".join(["arrival_us,src,dst,size_bytes,tenant", *rows]) + "\n")
    return rm.run(
        topology=DUMBBELL,
        transport=transports,
        workload={"pattern": "trace", "file": str(file)},
        quiet=True,
        **parts,
    )


def column(done: rm.Run, name: str) -> list[int]:
    return list(map(int, done.flows.sort_by("flow")[name].to_numpy()))


def times(done: rm.Run) -> list[int]:
    return column(done, "fct_ps")


def test_an_idle_second_transport_changes_no_result(tmp_path: Path) -> None:
    """The second transport's only message is submitted when those of the first are over."""
    rows = [f"{i},{i % 4},{4 + i % 3},{20_000 * (1 + i)},0" for i in range(12)]
    late = "100000,3,7,1000000,1"
    fabric = rm.Fabric(buffer_bytes=500_000, ecn_bytes=97_500, interface="pull")
    mixed = run([{"name": "dctcp"}, {"name": "dctcp"}], [*rows, late], tmp_path, fabric=fabric)
    alone = run([{"name": "dctcp"}], [*rows, late], tmp_path, fabric=fabric)
    assert times(mixed) == times(alone)


@pytest.mark.parametrize("first", SHARING)
def test_every_pair_delivers_everything(first: str, tmp_path: Path) -> None:
    rows = [
        f"{5 * i},{i % 8},{(i + 1 + i % 6) % 8},{1_000 * (1 + i * i)},{i % len(SHARING)}"
        for i in range(64)
        if i % 8 != (i + 1 + i % 6) % 8
    ]
    others = [{"name": name} for name in SHARING if name != first]
    done = run([{"name": first}, *others], rows, tmp_path)
    assert done.status == "finished", done.summary["flows"]
    slowdown = done.flows["fct_ps"].to_numpy() / done.flows["ideal_ps"].to_numpy()
    assert slowdown.min() >= 1


def test_hosts_divide_their_link_in_bytes(tmp_path: Path) -> None:
    """Two long messages of one host to two others: each transport has half of the link."""
    rows = ["0,0,1,20000000,0", "0,0,2,20000000,1"]
    done = run([{"name": "dctcp"}, {"name": "sird"}], rows, tmp_path)
    first, second = (time / 1e6 for time in times(done))
    # 20 MB take 16.4 ms of a link of 10 Gbit/s with headers: together 32.9 ms.
    assert first == pytest.approx(second, rel=0.02)
    assert max(first, second) == pytest.approx(32_900, rel=0.03)


def test_a_lower_class_has_the_remaining_capacity(tmp_path: Path) -> None:
    """Both transports send to one host; the second is in lower classes."""
    rows = ["0,0,4,10000000,0", "0,1,4,10000000,1"]
    upper = {"name": "sird"}
    equal = run([upper, {"name": "dctcp"}], rows, tmp_path)
    below = run([upper, {"name": "dctcp", "class": 2}], rows, tmp_path)
    alone = run([upper], rows[:1], tmp_path)
    assert times(below)[0] < 1.01 * times(alone)[0] < times(equal)[0]
    assert times(below)[1] > 1.5 * times(below)[0]


def test_packets_of_two_lengths_share_a_link(tmp_path: Path) -> None:
    """DCTCP with packets of 1280 and of 9000 bytes: ideals count the headers of each."""
    transports = [
        {"name": "dctcp", "payload-bytes": 1240},
        {"name": "dctcp", "payload-bytes": 8960},
    ]
    rows = ["0,0,4,1000000,0", "100000,1,5,1000000,1"]
    done = run(transports, rows, tmp_path)
    ideals = column(done, "ideal_ps")
    # 807 and 112 packets of 40 B of headers, less the time to store packets of 9000 B.
    assert ideals[0] > ideals[1] + 9e6
    slowdown = np.array(times(done)) / np.array(ideals)
    assert slowdown.min() >= 1
    assert slowdown.max() < 1.1


def test_flows_of_one_tenant_are_dealt_out(tmp_path: Path) -> None:
    done = rm.run(
        topology=DUMBBELL,
        transport=[rm.Tcp(), rm.Homa()],
        workload={
            **{"pattern": "permutation", "sizes": {"fixed": 1_000_000}},
            **{"load": 0.4, "flows": 100},
        },
        measure={"warmup-flows": 0},
        out=tmp_path / "out",
        quiet=True,
    )
    assert done.flows.sort_by("flow")["tenant"].to_pylist() == [0, 1] * 50
    assert list(done.summary["tenants"]) == ["0", "1"]
    (text_table,) = tables.tenants(done)
    assert [row[:3] for row in text_table.text().rows] == [("0", "tcp", "50"), ("1", "homa", "50")]


@pytest.mark.parametrize(
    ("transports", "message"),
    [
        (
            [{"name": "tcp"}, {"name": "ndp"}],
            "transport[1].name: expected a transport that can share the network with another, got "
            "NDP, which needs switches that queue by other rules than classes",
        ),
        ([{"name": "tcp"}, {"name": "fastpass"}], "an arbiter that schedules all traffic"),
        ([{"name": "tcp"}, {"name": "hpcc"}], "a program in each switch"),
        ([{"name": "tcp"}, {"name": "ideal"}], "transport[1].name: expected a transport that can"),
        ([{"name": "tcp"}, {"name": "homer"}], "transport[1].name: expected one of"),
        ([{"name": "tcp", "class": 8}, {"name": "homa"}], "transport[0].class: expected a whole"),
        ([], "transport: expected 1 to 8 tables, got 0"),
        ([{"name": "tcp"}] * 9, "transport: expected 1 to 8 tables, got 9"),
    ],
)
def test_transports_that_cannot_share_are_refused(
    transports: list[Any], message: str, tmp_path: Path
) -> None:
    with pytest.raises(rm.PlanError) as error:
        run(transports, ["0,0,1,1000,0"], tmp_path)
    assert message in str(error.value)


def test_a_class_needs_several_transports() -> None:
    plan = rm.Plan.of(
        topology=DUMBBELL,
        transport={"name": "tcp", "class": 1},
        workload=rm.imc10(load=0.3, flows=10),
    )
    with pytest.raises(rm.PlanError, match=r"transport\.class: expected several transports"):
        plan.check()


def test_ports_mark_if_any_transport_understands_marks(tmp_path: Path) -> None:
    """DCTCP is marked together with TCP, whichever is named first."""
    rows = ["0,0,4,5000000,0", "0,1,4,5000000,1", "0,2,4,5000000,0", "0,3,4,5000000,1"]
    for names in (("tcp", "dctcp"), ("dctcp", "tcp")):
        done = run([{"name": name} for name in names], rows, tmp_path)
        assert done.manifest["plan"]["fabric"]["ecn-bytes"] is not None


def test_a_list_of_one_transport_is_that_transport(tmp_path: Path) -> None:
    """A list of one transport is that transport, and may not have a class."""
    rows = ["0,0,4,500000,0"]
    one = run([{"name": "dctcp"}], rows, tmp_path)
    assert one.manifest["plan"]["transport"]["name"] == "dctcp"
    with pytest.raises(rm.PlanError, match=r"transport\[0\].class: expected several transports"):
        run([{"name": "dctcp", "class": 3}], rows, tmp_path)


def test_a_manifest_gives_the_same_results(tmp_path: Path) -> None:
    """Each packet has the path choice of its transport, in the manifest too."""
    plan = rm.Plan.of(
        topology={"kind": "leaf-spine", "racks": 2, "hosts-per-rack": 4, "spines": 4},
        transport=[rm.Homa(), rm.Dctcp()],
        workload=rm.imc10(load=0.5, flows=200),
    )
    first = rm.run(plan, out=tmp_path / "first", quiet=True)
    again = rm.run(tmp_path / "first" / "manifest.json", out=tmp_path / "again", quiet=True)
    assert first.manifest["plan"]["fabric"]["spray"] is None
    assert column(first, "fct_ps") == column(again, "fct_ps")


def test_each_tenant_needs_a_transport(tmp_path: Path) -> None:
    with pytest.raises(rm.PlanError, match="a transport for each of the tenants 0 to 2"):
        run([{"name": "tcp"}, {"name": "homa"}], ["0,0,1,1000,2"], tmp_path)


LIST = rm.Plan("""\
seed = 1
[topology]
kind = "leaf-spine"
racks = 2
hosts-per-rack = 2
spines = 1
[[transport]]
name = "tcp"
[[transport]]
name = "homa"
[workload]
pattern = "all-to-all"
sizes = "imc10"
load = 0.3
flows = 40
""")
ONE = rm.Plan(LIST.text.replace('[[transport]]\nname = "homa"\n', ""))


class Hanging(StopAndWait):
    """Hangs in `submit`."""

    def submit(self, now: int, message: rm.MessageToSend) -> None:
        while True:
            pass


def test_files_of_each_python_transport_are_inputs(tmp_path: Path) -> None:
    """A changed file that an endpoint imports makes another run."""
    (tmp_path / "mine.py").write_text(
        "import helper\nfrom rampmeter.endpoints import StopAndWait\n"
        "class Mine(StopAndWait): pass\n"
    )
    (tmp_path / "helper.py").write_text("WINDOW = 1\n")
    own = {"name": "python", "file": "mine.py", "endpoint": "Mine"}
    plan = replace(LIST.with_(("transport", [{"name": "tcp"}, own])), base=tmp_path)
    assert list(plan.input_digests()) == ["mine.py", "helper.py"]
    out = tmp_path / "out"
    assert rm.run(plan, out=out, quiet=True).status == "finished"
    (tmp_path / "helper.py").write_text("WINDOW = 2\n")
    with pytest.raises(rm.ResultError, match=r"helper\.py has changed"):
        rm.run(plan, out=out, quiet=True)


def test_a_python_transport_of_several_that_hangs_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner, "PATIENCE_SECONDS", 0.5)
    with pytest.raises(TimeoutError):
        rm.run(LIST, transport=[rm.Tcp(), Hanging.transport()], timeout=0.1, quiet=True)


def test_undelivered_flows_name_all_transports(tmp_path: Path) -> None:
    lost = write_results(tmp_path, rows=[(0, 1460, 5.0, 5), (10, 1460, None, 5)])
    for plan, label in ((LIST, "tcp + homa"), (ONE, "tcp")):
        outcome = JobOutcome(Job("job", plan, lost.path), "ran", lost)
        (counted,) = count_undelivered(Batch((outcome,), None, 1.0))
        assert counted.failure.startswith(f"{label}: 1 of 2 flows failed")


def test_a_list_of_one_transport_has_its_keys() -> None:
    assert ONE.transports() == [{"name": "tcp"}]
    assert ONE.get("transport.name") == "tcp"
    assert ONE.with_(("transport.preset", "new-reno")).check()["transport"]["preset"] == "new-reno"
    assert bed_of(ONE).transport["name"] == "tcp"
    with_window = ONE.with_(("transport.window-max", 99))
    assert TransportChoice("tcp").of(with_window).get("transport.window-max") == 99
    assert [point.name for point in sweep_of(rm.Plan(f"{ONE.text}[sweep]\nseeds = 2")).points] == [
        "tcp"
    ]


def test_results_of_a_list_of_one_name_the_key_that_differs(tmp_path: Path) -> None:
    rm.run(ONE, out=tmp_path, quiet=True)
    with pytest.raises(rm.ResultError, match=r"workload\.load: 0\.3 there, 0\.4 here"):
        rm.run(rm.Plan(ONE.text.replace("0.3", "0.4")), out=tmp_path, quiet=True)


def test_errors_of_single_transport_features_name_key_and_number() -> None:
    sweep = rm.Plan(f"{LIST.text}[sweep]\nseeds = 2", origin="a.toml")
    with pytest.raises(
        rm.PlanError, match=r"a\.toml: transport: expected one transport, or transports .* got 2"
    ):
        sweep_of(sweep)
    assert len(sweep_of(sweep, SweepOverrides(transports="tcp,homa")).points) == 2
    with pytest.raises(
        rm.PlanError, match="transport: expected one transport between hosts, got a list of 2"
    ):
        bed_of(LIST)
    with pytest.raises(
        rm.PlanError, match=r"transport\.preset: expected transport to be a table, got a list of 2"
    ):
        LIST.with_(("transport.preset", "paper"))


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("3", "transport: expected a table or a list of tables, got 3"),
        (
            '["tcp", "homa"]',
            "transport: expected one transport, or transports of the sweep, got 2",
        ),
        ("{ name = 3 }", "transport.name: expected a text, got 3"),
        ("{ window-max = 3 }", "transport.name: expected a text, got none"),
        ('{ name = "tcp", preset = 3 }', "transport.preset: expected a text, got 3"),
    ],
)
def test_other_values_than_tables_of_transports_are_refused(value: str, message: str) -> None:
    with pytest.raises(rm.PlanError) as error:
        sweep_of(rm.Plan(f"transport = {value}\n[sweep]\nseeds = 2"))
    assert str(error.value) == f"plan: {message}"
