"""The speed of whole runs on one core, each in a process of its own so that memory is its own."""

import json
import multiprocessing
from collections.abc import Mapping
from concurrent.futures import ProcessPoolExecutor
from typing import Any, Final

from rampmeter import _core
from rampmeter._core import PlanError
from rampmeter.plan import Plan
from rampmeter.spec import DcPim, fat_tree, imc10, leaf_spine

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
}
"""The standard benchmarks: dcPIM on IMC10 at load 0.6."""


def measure(plans: Mapping[str, Plan]) -> dict[str, dict[str, Any]]:
    """Run each plan once, one after another; give what `_core.bench` reports of each."""
    for plan in plans.values():
        plan.check()
    context = multiprocessing.get_context("spawn")
    reports = {}
    for name, plan in plans.items():
        with ProcessPoolExecutor(1, mp_context=context) as pool:
            text = pool.submit(_core.bench, plan.text, str(plan.base)).result()
        report: dict[str, Any] = json.loads(text)
        if report["cpu_seconds"] <= 0:
            raise PlanError(f"{plan.origin}: expected a run long enough to be timed")
        reports[name] = report
    return reports
