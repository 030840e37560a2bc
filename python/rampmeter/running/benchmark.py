"""Measures the speed of whole runs on one core. Each run is a separate process, so that their
memory is separate."""

import json
import multiprocessing
import shutil
import signal
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from rampmeter import _core
from rampmeter.parts.shortcuts import fat_tree, imc10, leaf_spine
from rampmeter.plan.base import Transport
from rampmeter.plan.plan import Plan
from rampmeter.plan.schema import PYTHON, transports
from rampmeter.running.runner import StopCondition, stopping_on_signals
from rampmeter.text.locations import Location
from rampmeter.transports import DcPim

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

POLL_SECONDS: Final = 0.2
"""Interval at which a run is checked for its end."""


def _small(transport: Transport) -> Plan:
    """Returns the 144 hosts of pHost's study with a third of the flows."""
    topology = leaf_spine(access_gbps=10.0, core_gbps=40.0)
    return Plan.of(topology=topology, transport=transport, workload=imc10(load=0.6, flows=30_000))


PLANS: Final = {
    "144 hosts": Plan.of(
        topology=leaf_spine(),
        transport=DcPim(preset="reference"),
        workload=imc10(load=0.6, flows=100_000),
    ),
    "1024 hosts": Plan.of(
        topology=fat_tree(16),
        transport=DcPim(preset="reference"),
        workload=imc10(load=0.6, flows=100_000),
    ),
    **{
        f"144 hosts, 10 G, {about['title']}": _small(Transport(name=about["name"]))
        for about in transports()
        if about["wire"] is not None and about["name"] != PYTHON
    },
}
"""The standard benchmarks, IMC10 at load 0.6: dcPIM, then every transport with packets."""


QUICK: Final = {
    "144 hosts": PLANS["144 hosts"].with_(("workload.flows", 10_000)),
    "1024 hosts": PLANS["1024 hosts"].with_(("workload.flows", 10_000)),
}
"""The first benchmarks with 10 % of the flows: less than a minute."""


@dataclass(frozen=True)
class Benchmarks:
    """Speeds of plans."""

    reports: dict[str, dict[str, Any]]
    """Reports of `_core.bench` by plan, of those that ended."""
    stopped_by: signal.Signals | None
    """The signal that ended them: SIGINT, SIGTERM, or none."""


def measure(
    plans: Mapping[str, Plan], on_start: Callable[[str], None] = lambda name: None
) -> Benchmarks:
    """Runs each plan once, one after another. `on_start` is called with the name of each.

    Ctrl-C and SIGTERM end the current run.
    """
    for plan in plans.values():
        plan.check_run()
    reports: dict[str, dict[str, Any]] = {}
    stop = StopCondition()
    with stopping_on_signals(stop):
        for name, plan in plans.items():
            on_start(name)
            report = _measure_one(plan, stop)
            if report is None:
                break
            reports[name] = report
    return Benchmarks(reports, stop.by)


def _measure_one(plan: Plan, stop: StopCondition) -> dict[str, Any] | None:
    """Runs a plan in a process; `None` if it was stopped."""
    context = multiprocessing.get_context("spawn")
    ours, others = context.Pipe(duplex=False)
    process = context.Process(target=_bench, args=(others, plan.text, str(plan.base)), daemon=True)
    process.start()
    others.close()
    try:
        while not ours.poll(POLL_SECONDS):
            if stop.is_set():
                return None
        report: dict[str, Any] = json.loads(ours.recv())
    except EOFError:
        process.join()
        raise plan.location().error(
            expected="a run that ends", got=f"exit code {process.exitcode} of its process"
        ) from None
    finally:
        process.terminate()
        process.join()
    if report["cpu_seconds"] <= 0:
        raise plan.location().error(
            expected="a run long enough to be timed", got=f"{report['cpu_seconds']} s"
        )
    return report


def _bench(results: "Connection", text: str, base: str) -> None:
    """Runs a plan and sends its report. The parent process handles Ctrl-C."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    results.send(_core.bench(text, base))


HOST_BENCHMARKS: Final = {
    "datapaths": "run --release -p rampmeter-host-bench --bin xdp_rate",
    "cpu per packet": "run --release -p rampmeter-host-bench --bin cpu_per_packet",
    "rings": "bench -p rampmeter-ring",
    "arbiter": "bench -p rampmeter-proto --bench fastpass",
}
"""Measurements of hosts, by the arguments of cargo. The first two need root."""


def measure_hosts() -> None:
    """Builds and runs the benchmarks of hosts, which print their results themselves.

    Raises `PlanError` outside a checkout of the project, or without cargo.
    """
    cargo = shutil.which("cargo")
    manifest = next((f for f in map(_manifest, [Path.cwd(), *Path.cwd().parents]) if f), None)
    if cargo is None or manifest is None:
        raise Location(key="bench hosts").error(
            "requires cargo, and a checkout of the project around the working directory"
        )
    for arguments in HOST_BENCHMARKS.values():
        verb, *rest = arguments.split()
        subprocess.run(
            [cargo, verb, "--locked", "--manifest-path", str(manifest), *rest], check=True
        )


def _manifest(folder: Path) -> Path | None:
    """Returns the workspace's manifest; `None` if the folder is no workspace."""
    file = folder / "Cargo.toml"
    return file if (folder / "crates" / "runtime").is_dir() and file.is_file() else None
