"""A TCP flow over a long path is as fast as its receiver's window allows."""

from pathlib import Path
from typing import Final

import pytest

import rampmeter as rm

PAYLOAD: Final = 1460
HEADER: Final = 40
GBPS: Final = 10.0
PROPAGATION_NS: Final = 1_000_000.0
PROCESSING_NS: Final = 450.0
ROUNDS: Final = 50


def round_trip_us() -> float:
    """Returns the round trip of a full packet and its acknowledgement over two links, in us."""
    bits = 2 * 8 * (PAYLOAD + HEADER) + 2 * 8 * HEADER
    return (4 * (PROPAGATION_NS + PROCESSING_NS) + bits / GBPS) / 1e3


def run(transport: dict[str, str | int], size: int, folder: Path) -> rm.Run:
    file = folder / "flows.csv"
    file.write_text(f"arrival_us,src,dst,size_bytes\n0,0,1,{size}\n")
    return rm.run(
        topology={
            "kind": "star",
            "hosts": 2,
            "access-gbps": GBPS,
            "propagation-ns": PROPAGATION_NS,
            "switch-ns": PROCESSING_NS,
            "host-ns": PROCESSING_NS,
        },
        transport=transport,
        workload={"pattern": "trace", "file": str(file)},
        run=rm.RunOptions(rates_us=1000.0),
        out=folder / "out",
        force=True,
        quiet=True,
    )


def time_us(done: rm.Run) -> float:
    assert done.status == "finished"
    [delivered] = done.flows["fct_ps"].to_numpy()
    return float(delivered) / 1e6


@pytest.mark.parametrize("name", ["tcp", "dctcp", "pias"])
@pytest.mark.parametrize("segments", [20, 100, 1000])
def test_throughput_is_the_window_over_the_round_trip(
    name: str, segments: int, tmp_path: Path
) -> None:
    """The window is far below 5 MB, the bandwidth-delay product; slow start cancels out."""
    window = segments * PAYLOAD
    transport: dict[str, str | int] = {"name": name, "receive-buffer-bytes": window}
    base = 50 * window
    short = time_us(run(transport, base, tmp_path))
    done = run(transport, base + ROUNDS * window, tmp_path)
    assert time_us(done) - short == pytest.approx(ROUNDS * round_trip_us(), rel=1e-6)
    assert done.windows is not None
    table = done.windows.to_pandas()
    in_flight = table[table["name"] == "in_flight_bytes"]["value"]
    assert in_flight.max() == window


def test_without_a_limit_the_link_is_full(tmp_path: Path) -> None:
    """The derived window is two bandwidth-delay products."""
    transport: dict[str, str | int] = {"name": "tcp"}
    size = 100_000_000
    more = time_us(run(transport, 2 * size, tmp_path)) - time_us(run(transport, size, tmp_path))
    wire = size / PAYLOAD * (PAYLOAD + HEADER)
    assert more == pytest.approx(wire * 8 / GBPS / 1e3, rel=0.01)
