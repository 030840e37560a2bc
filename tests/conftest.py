"""Fixtures of several tests: a small run of the simulator, and a scripted simulator."""

import json
import os
import shutil
import signal
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import rampmeter as rm
from rampmeter import _core
from rampmeter.plan.manifest import MANIFEST
from rampmeter.results.missing import SUMMARY
from rampmeter.results.run import FLOWS

if TYPE_CHECKING:
    from selenium.webdriver import Chrome

    from rampmeter._core import Progress

ROOT = Path(__file__).parents[1]
FIG3 = ROOT / "papers/dcpim/fig3"

SMALL = """\
seed = 1
[topology]
kind = "star"
hosts = 8
[transport]
name = "dcpim"
[workload]
pattern = "all-to-all"
sizes = "imc10"
load = 0.5
flows = 200
"""


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """With `RAMPMETER_CI=1` a skipped test has failed: CI has all that tests need."""
    report = yield
    is_skip = report.skipped and not hasattr(report, "wasxfail")
    if is_skip and os.environ.get("RAMPMETER_CI") == "1":
        report.outcome = "failed"
        report.longrepr = f"skipped, which CI must not: {report.longrepr}"
    return report


NODES = {
    *("test_apps", "test_collectives", "test_cosy", "test_daemons", "test_experiment"),
    *("test_hosts", "test_hosts_review", "test_key_log", "test_linux_tcp", "test_middlebox"),
    *("test_networks", "test_node_limits", "test_published", "test_several_transports"),
    *("test_soak", "test_stopped_nodes", "test_stress", "test_testbed"),
}
"""Modules whose tests start nodes or networks of the kernel. They run one after another, so that
their times do not depend on each other."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leaves all tests of nodes to one process of `pytest -n`."""
    for item in items:
        if item.path.stem in NODES:
            item.add_marker(pytest.mark.xdist_group("nodes"))


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Returns an empty folder, which is the working folder of the test."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture(autouse=True)
def interrupts_are_heard() -> Iterator[None]:
    """Enables interrupts in tests, even if the shell that started them ignores them."""
    previous = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, previous)


@pytest.fixture
def plan_file(tmp_path: Path) -> Path:
    """Returns a plan that runs in a moment."""
    file = tmp_path / "small.toml"
    file.write_text(SMALL)
    return file


@pytest.fixture(scope="session")
def small_run(tmp_path_factory: pytest.TempPathFactory) -> rm.Run:
    """Returns the results of the small plan."""
    return rm.run(rm.Plan(SMALL), out=tmp_path_factory.mktemp("small"), quiet=True)


def interrupted(run: Path, folder: Path) -> Path:
    """Copies the results of a run as those of an interrupted one, and returns their folder."""
    shutil.copytree(run, folder)
    summary = json.loads((folder / SUMMARY).read_text())
    (folder / SUMMARY).write_text(json.dumps({**summary, "status": "interrupted"}))
    return folder


Script = Callable[[Callable[["Progress"], bool]], str]


class FakeCore:
    """Replaces `_core.run`; writes the files that the runner needs and counts its runs."""

    def __init__(self) -> None:
        self.plans: list[str] = []
        self.rows: list[tuple[int, int, float | None, int]] | None = None
        """The flows of every run, as of `write_results`."""
        self.n_rejected = 0
        self.script: Script = lambda _: "finished"
        """Called with the progress callback; returns the status of the run, or raises."""

    def run(
        self,
        plan: str,
        base: str,
        out: str,
        progress: Callable[["Progress"], bool] | None = None,
        default_threads: int = 1,
    ) -> str:
        assert default_threads > 0
        self.plans.append(plan)
        assert progress is not None
        status = self.script(progress)
        write_results(Path(out), status=status, rows=self.rows, n_rejected=self.n_rejected)
        return (Path(out) / SUMMARY).read_text()


@pytest.fixture
def fake_core(monkeypatch: pytest.MonkeyPatch) -> FakeCore:
    """Returns a simulator that finishes at once unless its script does something else."""
    fake = FakeCore()
    monkeypatch.setattr(_core, "run", fake.run)
    return fake


def progress(delivered: int = 1) -> "Progress":
    return {
        "submitted": delivered,
        "delivered": delivered,
        "total": 10,
        "now_ps": 1,
        "hops": 1,
        "events": 1,
    }


def write_results(
    out: Path,
    *,
    status: str = "finished",
    utilisation: float = 0.99,
    rows: list[tuple[int, int, float | None, int]] | None = None,
    n_rejected: int = 0,
) -> rm.Run:
    """Returns a result folder; `rows` are arrival, size, time taken and ideal of each flow.

    Of the flows that took no time, `n_rejected` were rejected; the others failed.
    """
    out.mkdir(parents=True, exist_ok=True)
    rows = rows or [(0, 1460, 5.0, 5), (10, 1460, 5.0, 5)]
    arrival, size, took, ideal = (list(column) for column in zip(*rows, strict=True))
    columns = {
        "flow": pa.array(range(len(rows)), pa.uint64()),
        "src": pa.array([0] * len(rows), pa.uint32()),
        "dst": pa.array([1] * len(rows), pa.uint32()),
        "arrival_ps": pa.array(arrival, pa.uint64()),
        "size_bytes": pa.array(size, pa.uint64()),
        "fct_ps": pa.array(took, pa.uint64()),
        "acked_ps": pa.array(took, pa.uint64()),
        "ideal_ps": pa.array(ideal, pa.uint64()),
        "acked_ideal_ps": pa.array(ideal, pa.uint64()),
        "figure_ideal_ps": pa.array(ideal, pa.uint64()),
    }
    pq.write_table(pa.table(columns), out / FLOWS)
    delivered = int(np.count_nonzero([t is not None for t in took]))
    lost = len(rows) - delivered
    summary = {
        "status": status,
        "flows": {
            "submitted": len(rows),
            "delivered": delivered,
            "failed": lost - n_rejected,
            "rejected": n_rejected,
        },
        "delivered_share": utilisation,
        "utilisation": utilisation,
        "nfct": 1.0,
        "goodput_gbps": 1.0,
        "slowdown": {
            "delivered": {
                "overall": {"count": 1, "mean": 1, "p50": 1, "p99": 1, "p999": 1, "max": 1},
                "bdp": [{"label": "<1 BDP", "upper_bytes": 71_539, "stats": None}],
            }
        },
        "tiers": [],
    }
    (out / SUMMARY).write_text(json.dumps(summary))
    (out / MANIFEST).write_text(json.dumps({"status": status}))
    return rm.Run(out)


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator["Chrome"]:
    """Starts Chromium without a window, with a log of its console."""
    driver = shutil.which("chromedriver")
    if driver is None:
        pytest.skip("there is no chromedriver: make system")
    from selenium.webdriver import Chrome, ChromeOptions, ChromeService

    options = ChromeOptions()
    profile = tmp_path_factory.mktemp("chromium")
    for flag in (
        *("headless=new", "no-sandbox", "disable-gpu", "no-first-run", "disable-sync"),
        *("disable-background-networking", "disable-component-update", "disable-dev-shm-usage"),
        f"user-data-dir={profile}",
        "window-size=1280,1000",
    ):
        options.add_argument(f"--{flag}")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    chrome = Chrome(options=options, service=ChromeService(driver))
    yield chrome
    chrome.quit()
