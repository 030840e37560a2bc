"""DCTCP's queue on a dumbbell against the theory of its paper (SIGCOMM 2010, section 3.3)."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from numpy.typing import NDArray

import rampmeter as rm

RTT_US, CORE_GBPS, WIRE_BYTES = 100, 10, 1500

PRODUCT = RTT_US * CORE_GBPS * 1e3 / 8 / WIRE_BYTES
"""Packets that a round trip of the empty network has room for: C x RTT."""


@dataclass(frozen=True)
class Theory:
    """N flows in step, a port that marks above K packets; lengths in packets."""

    flows: int
    above: int

    @property
    def window(self) -> float:
        """The window of a flow at which the port begins to mark (W*)."""
        return (PRODUCT + self.above) / self.flows

    @property
    def largest(self) -> int:
        """The longest queue (equation 7): windows grow once more until marks arrive."""
        return self.above + self.flows

    @property
    def swing(self) -> float:
        """From the longest to the shortest queue (equation 8, before it is simplified)."""
        share = (2 * self.window + 1) / (self.window + 1) ** 2
        roots = np.roots([-0.25, 1, 0, -share])
        alpha = min(root.real for root in roots if 0 < root.real <= 1)
        return float(self.flows * (self.window + 1) * alpha / 2)


def queue(folder: Path, flows: int, above: int, warm_ms: int = 15) -> NDArray[np.float64]:
    """Returns packets in the middle queue, sampled every microsecond, once flows are even."""
    trace = folder / "flows.csv"
    rows = [f"0,{flow},{flows + flow},{10**12}" for flow in range(flows)]
    trace.write_text("\n".join(["arrival_us,src,dst,size_bytes", *rows]))
    run = rm.run(
        topology={
            "kind": "dumbbell",
            "hosts-per-side": flows,
            "access-gbps": 40,
            "core-gbps": CORE_GBPS,
            # Three links in each direction.
            "propagation-ns": round(RTT_US * 1e3 / 6),
            "switch-ns": 0,
            "host-ns": 0,
        },
        transport={"name": "dctcp", "ecn-packets": above, "switch-queue-packets": 1000},
        workload={"pattern": "trace", "file": str(trace)},
        run={"sample-us": 1, "drain-us": 2 * warm_ms * 1000},
        quiet=True,
    )
    path = run.path / "series.parquet"
    series = pq.read_table(path, filters=[("tier", "==", "tor-across")])
    times, lengths = series["time_ps"].to_numpy(), series["queue_max_bytes"].to_numpy()
    return np.asarray(lengths[times > warm_ms * 1e9] / WIRE_BYTES)


def cycles(lengths: NDArray[np.float64]) -> float:
    """Returns the mean time from one fall of the queue to the next, in loaded round trips."""
    high, low = np.quantile(lengths, [0.75, 0.25])
    marks = np.where(lengths >= high, 1, np.where(lengths <= low, -1, 0))
    marks = marks[marks != 0]
    falls = np.count_nonzero((marks[:-1] == 1) & (marks[1:] == -1))
    loaded_us = RTT_US + lengths.mean() * WIRE_BYTES * 8 / CORE_GBPS / 1e3
    return float(len(lengths) / falls / loaded_us)


@pytest.mark.parametrize("above", [40, 65])
@pytest.mark.parametrize("flows", [1, 2, 10, 40])
def test_the_queue_is_that_of_the_theory(tmp_path: Path, flows: int, above: int) -> None:
    theory, lengths = Theory(flows, above), queue(tmp_path, flows, above)
    assert lengths.max() == pytest.approx(theory.largest, abs=1)
    # Windows are whole segments: half a segment of every flow, and a packet of the sample.
    grain = flows / 2 + 1
    swing = lengths.max() - lengths.min()
    assert swing == pytest.approx(theory.swing, abs=grain)
    middle = theory.largest - theory.swing / 2
    assert lengths.mean() == pytest.approx(middle, abs=grain / 2 + 1)
    # The link is never idle: K is above a seventh of C x RTT (equation 13).
    assert lengths.min() > 0
    if flows <= 10:
        # Windows grow back by a segment a round trip. The theory counts nothing else. But marks are
        # received after a round trip, and windows do not grow in the next one, nor before one is
        # over.
        growing = swing / flows
        assert growing <= cycles(lengths) <= growing + 3


def test_a_port_that_marks_too_early_has_an_idle_link(tmp_path: Path) -> None:
    # A seventh of C x RTT is 12 packets (equation 13).
    assert queue(tmp_path, flows=2, above=16).min() > 0
    assert np.mean(queue(tmp_path, flows=2, above=3) == 0) > 0.1
