"""Measures the speed of whole runs on one core. Each run is a separate process, so that their
memory is separate."""

import json
import multiprocessing
import shutil
import subprocess
from collections.abc import Mapping
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any, Final

from rampmeter import _core
from rampmeter.parts.shortcuts import fat_tree, imc10, leaf_spine
from rampmeter.plan.base import Transport
from rampmeter.plan.plan import Plan
from rampmeter.plan.schema import PYTHON, transports
from rampmeter.text.locations import Location
from rampmeter.transports import DcPim


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


def measure(plans: Mapping[str, Plan]) -> dict[str, dict[str, Any]]:
    """Runs each plan once, one after another; returns the reports of `_core.bench`."""
    for plan in plans.values():
        plan.check()
    context = multiprocessing.get_context("spawn")
    reports = {}
    for name, plan in plans.items():
        with ProcessPoolExecutor(1, mp_context=context) as pool:
            text = pool.submit(_core.bench, plan.text, str(plan.base)).result()
        report: dict[str, Any] = json.loads(text)
        if report["cpu_seconds"] <= 0:
            raise plan.location().error(
                expected="a run long enough to be timed", got=f"{report['cpu_seconds']} s"
            )
        reports[name] = report
    return reports


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
