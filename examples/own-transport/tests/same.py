"""Stop and wait in Python and in Rust: every flow has the same times, also if packets are lost.

`RAMPMETER_EXTENSION` is the library of this crate. Prints the ratio of the times of both.
"""

import time
from typing import Any

import pyarrow as pa
import rampmeter as rm
from rampmeter.endpoints import StopAndWait

PYTHON = StopAndWait.transport()
RUST = rm.Transport(name="stop-and-wait")
FAULTS = [
    rm.Faults(),
    rm.Faults(loss=0.01),
    rm.Faults(loss=0.02, duplicate=0.01, reorder=0.05, delay_us=5.0),
]


def flows(transport: rm.Transport, seconds: dict[str, float], **parts: Any) -> pa.Table:
    """Every column of every flow on a star of 16 hosts; adds how long it took to `seconds`."""
    start = time.perf_counter()
    run = rm.run(
        topology=rm.star(16),
        transport=transport,
        workload=rm.imc10(load=0.5, flows=1_000),
        quiet=True,
        **parts,
    )
    seconds[transport.name] = seconds.get(transport.name, 0.0) + time.perf_counter() - start
    return run.flows.sort_by("flow")


def main() -> None:
    """Compare."""
    seconds: dict[str, float] = {}
    for faults in FAULTS:
        for seed in (1, 2):
            python = flows(PYTHON, seconds, faults=faults, seed=seed)
            rust = flows(RUST, seconds, faults=faults, seed=seed)
            assert python.equals(rust), f"{faults}, seed {seed}: the flows differ"
            assert sum(rust["retransmitted_bytes"].to_pylist()) > 0 or faults == FAULTS[0]
    slower = seconds[PYTHON.name] / seconds[RUST.name]
    print(f"stop and wait is the same in Python and in Rust, and takes {slower:.0f} times as long")


if __name__ == "__main__":
    main()
