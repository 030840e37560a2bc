"""Measures the single runs of docs/project/fidelity-review.md: `python -m tests.fidelity A1 A5`."""

import sys
import tempfile
import tomllib
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import rampmeter as rm

PAPERS: Final = Path(__file__).parents[1] / "papers"
Parts = dict[str, Any]


def _run(**parts: Any) -> rm.Run:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return rm.run(seed=1, quiet=True, **parts)


def _dumbbell(transport: str) -> str:
    """Measures a dumbbell: eight hosts send 20 MB each through a link as fast as theirs."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "flows.csv"
        rows = [f"0,{n},{8 + n},20000000" for n in range(8)]
        file.write_text("\n".join(["arrival_us,src,dst,size_bytes", *rows]) + "\n")
        done = _run(
            topology={"kind": "dumbbell", "hosts-per-side": 8, "core-gbps": 100.0},
            transport={"name": transport},
            workload={"pattern": "trace", "file": str(file)},
            run={"drain-us": 2e6},
        )
    ends = [ps for ps in done.flows["fct_ps"].to_pylist() if ps is not None]
    again = float(done.flows["retransmitted_bytes"].to_numpy().sum()) / 160e6
    return (
        f"{transport}: ends after {max(ends, default=0) / 1e9:.2f} ms, {100 * again:.1f} % "
        f"retransmitted, {8 - len(ends)} of 8 not delivered; {done.summary['warnings']}"
    )


def failures_of_phost() -> str:
    """Measures failures of pHost: Data Mining in the network of its figure 3."""
    plan = tomllib.loads((PAPERS / "phost" / "fig3" / "plan.toml").read_text(encoding="utf-8"))
    plan["workload"] |= {"sizes": "data-mining", "flows": 5_000}
    done = _run(**{table: keys for table, keys in plan.items() if table != "seed"})
    status = done.flows["status"].to_pylist()
    return f"{status.count('failed')} of {len(status)} failed"


def below_the_ideal() -> str:
    """Returns Homa's slowdowns below 1: sizes of W4 at load 0.1, and full packets of 9000 B."""
    racks = {"kind": "leaf-spine", "racks": 4, "hosts-per-rack": 8, "spines": 2}
    texts = []
    for sizes, payload in (("homa-w4", 1_460), ("imc10", 8_960)):
        done = _run(
            topology=racks,
            transport={"name": "homa", "payload-bytes": payload},
            workload={"pattern": "all-to-all", "sizes": sizes, "load": 0.1, "flows": 2_000},
        )
        took = done.flows["fct_ps"].to_numpy() / done.flows["ideal_ps"].to_numpy()
        texts.append(f"{sizes}: {int((took < 1).sum())} below 1, the least {took.min():.3f}")
    return "; ".join(texts)


def incast_of_phost() -> str:
    """Measures an incast of pHost: 100 KB from each of 31 hosts to one."""
    done = _run(
        topology={"kind": "leaf-spine", "racks": 4, "hosts-per-rack": 8, "spines": 2},
        transport={"name": "phost"},
        workload={"pattern": "incast", "fan": 31, "flow-bytes": 100_000, "rounds": 1},
    )
    warned = [text for text in done.summary["warnings"] if "sent before" in text]
    return f"{done.flows.num_rows} flows; warned: {warned[0] if warned else 'of nothing'}"


def last_end(done: rm.Run) -> float:
    """Returns the longest completion time, in picoseconds; all messages must be delivered."""
    return float(done.flows["fct_ps"].to_numpy().max())


LONG_STAR: Final[Parts] = {
    **{"kind": "star", "hosts": 9, "access-gbps": 100.0},
    **{"propagation-ns": 7_500.0, "switch-ns": 0.0, "host-ns": 0.0},
}


def incast_of_hyline() -> str:
    """Measures 8 messages of 400 KB to a host: Hyline, and TCP with its windows and ports."""
    windows = {"name": "tcp", "window-initial": 89, "window-max": 255}
    texts = []
    for name, transport, fabric in (
        ("hyline", {"name": "hyline"}, {}),
        ("tcp, dup-ack", windows | {"loss-detection": "dup-ack"}, {"buffer-bytes": 762_000}),
        ("tcp, rack-tlp", windows | {"loss-detection": "rack-tlp"}, {"buffer-bytes": 762_000}),
    ):
        load = {"pattern": "incast", "fan": 8, "flow-bytes": 400_000, "rounds": 1}
        parts: Parts = {"fabric": fabric} if fabric else {}
        done = _run(topology=LONG_STAR, transport=transport, workload=load, **parts)
        texts.append(f"{name}: ends after {last_end(done) / 1e6:.0f} us")
    return "; ".join(texts)


def rejections_of_cosy() -> str:
    """Counts the flows that cosy rejects: IMC10 at load 0.6."""
    done = _run(
        topology={"kind": "leaf-spine", "racks": 4, "hosts-per-rack": 8, "spines": 2},
        transport={"name": "cosy"},
        workload={"pattern": "all-to-all", "sizes": "imc10", "load": 0.6, "flows": 2_000},
    )
    n = done.summary["flows"]["rejected"]
    warned = [text for text in done.summary["warnings"] if "reject" in text]
    return f"{n} of 2000 rejected; warned: {warned[0] if warned else 'of nothing'}"


HEALTHY: Final = (
    {"kind": "star", "hosts": 16, "access-gbps": 100.0},
    {"kind": "fat-tree", "k": 4, "access-gbps": 25.0},
    {"kind": "leaf-spine", "racks": 4, "hosts-per-rack": 8, "spines": 4},
)
LOADS: Final = (("web-search", 0.9), ("homa-w4", 0.85))
SENDERS: Final = (
    "fastpod", "ndp", "homa-aeolus", "pfabric", "tcp", "phost", "hyline", "dcpim", "homa", "capton",
    "pias", "dctcp", "sird", "hpcc", "fastpass", "cosy",
)  # fmt: skip


def retransmitted_in_healthy_networks() -> str:
    """Measures the largest shares of payload that is retransmitted, and that arrives twice."""
    lines = []
    for transport in SENDERS:
        shares = []
        for topology in HEALTHY:
            for sizes, load in LOADS:
                done = _run(
                    topology=topology,
                    transport={"name": transport},
                    workload={
                        **{"pattern": "all-to-all", "sizes": sizes},
                        **{"load": load, "flows": 3_000},
                    },
                )
                size, again = (
                    float(done.flows[name].to_numpy().sum())
                    for name in ("size_bytes", "retransmitted_bytes")
                )
                twice = done.summary["counters"]["duplicate_bytes"]
                shares.append((100 * again / size, 100 * twice / size))
        most = [max(column) for column in zip(*shares, strict=True)]
        lines.append(f"{transport} {most[0]:.3f} % retransmitted, {most[1]:.3f} % twice")
    return "; ".join(lines)


MEASURES: Final[dict[str, Callable[[], str]]] = {
    "A1": failures_of_phost,
    "A2": lambda: _dumbbell("dcpim"),
    "A5": below_the_ideal,
    "A10": lambda: _dumbbell("fastpod"),
    "A11": lambda: _dumbbell("capton"),
    "A19": rejections_of_cosy,
    "A22": incast_of_phost,
    "incast": incast_of_hyline,
    "healthy": retransmitted_in_healthy_networks,
}
"""Measurement for a finding."""


def main() -> int:
    """Prints a line for each finding that is named, or for all."""
    for name in sys.argv[1:] or MEASURES:
        sys.stdout.write(f"{name}: {MEASURES[name]()}\n")
        sys.stdout.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main())
