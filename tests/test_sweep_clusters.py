"""Sweeps on real clusters on this machine: the same bytes as here, even if processes die.

6 loads, 5 transports and 5 seeds are 150 runs. While a cluster makes them, one of its workers and
then the driver are killed; a second driver continues.
"""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import pytest
from distributed import LocalCluster

import rampmeter as rm
from rampmeter.sweeps.dataset import Dataset
from rampmeter.sweeps.engines.on_dask import DaskEngine
from rampmeter.sweeps.resources import Allotment, Capacity
from rampmeter.sweeps.table import sweep_of
from rampmeter.sweeps.task import Packer, TaskResult

from .conftest import ROOT, SMALL

PLAN = """\
seed = 1
[topology]
kind = "star"
hosts = 5
[transport]
name = "dcpim"
[workload]
pattern = "all-to-all"
sizes = { cdf = "sizes.txt" }
load = 0.5
flows = 150
[run]
sample-us = 0
[sweep]
seeds = 5
transports = ["dcpim", "phost", "pfabric:window-initial=60,window-max=60", "fastpass", "ideal"]
grid = { "workload.load" = "0.3..0.8:0.1" }
"""
SIZES = "1460 0.0\n14600 0.6\n146000 0.9\n1460000 1.0\n"
N_RUNS = 6 * 5 * 5
COMMAND = [sys.executable, "-m", "rampmeter.cli", "sweep"]
DEADLINE = 100.0


def environment(scratch: Path, **further: str) -> dict[str, str]:
    """Returns the environment of clusters and drivers, with the package under test.

    Temporary folders of killed processes remain in `scratch`.
    """
    paths = [str(ROOT / "python"), os.environ.get("PYTHONPATH", "")]
    return {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(filter(None, paths)),
        "TMPDIR": str(scratch),
        "RAY_USAGE_STATS_ENABLED": "0",
        # Without clusters of several machines Ray stays on the loopback address.
        "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",
        **further,
    }


@dataclass(frozen=True)
class Cluster:
    """A cluster, and how to find its workers."""

    on: str
    workers: Callable[[], list[psutil.Process]]


def until(what: Callable[[], bool]) -> None:
    """Waits until a condition is true."""
    deadline = time.monotonic() + DEADLINE
    while not what():
        assert time.monotonic() < deadline, "it takes too long"
        time.sleep(0.05)


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port: int = one.getsockname()[1]
        return port


@contextmanager
def stopping(*processes: "subprocess.Popen[str]") -> Iterator[None]:
    """Ends processes, and all their children, at the end."""
    try:
        yield
    finally:
        started = [
            one for process in processes for one in psutil.Process(process.pid).children(True)
        ]
        for process in processes:
            if process.stdin is not None:
                process.stdin.close()
            else:
                # A worker waits for its scheduler if both end at the same time.
                process.kill()
        for process in processes:
            process.wait(30)
        gone, alive = psutil.wait_procs(started, 20)
        for one in alive:
            one.kill()
        assert not alive, f"left behind: {alive}, gone: {len(gone)}"


@pytest.fixture(scope="module")
def ray_cluster() -> Iterator[Cluster]:
    """Yields two nodes of a processor each, and the client's server."""
    # Ray's sockets have names of at most 107 characters.
    folder = Path(tempfile.mkdtemp(prefix="ray-", dir="/tmp"))
    port = free_port()
    command = [sys.executable, str(ROOT / "tests/ray_cluster.py"), str(port)]
    with (folder / "log").open("w") as log:
        process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            env=environment(folder, RAY_TMPDIR=str(folder)),
        )
        with stopping(process):
            assert process.stdout is not None
            line = process.stdout.readline()
            assert line, (folder / "log").read_text()
            head = psutil.Process(process.pid)
            yield Cluster(
                f"ray://{line.split()[1]}",
                lambda: [p for p in head.children(True) if "_execute" in " ".join(cmdline(p))],
            )
            process.stdout.close()
    shutil.rmtree(folder)


@pytest.fixture(scope="module")
def dask_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Yields a scheduler and three workers of a thread each, as separate processes."""
    folder = tmp_path_factory.mktemp("dask")
    file = folder / "scheduler.json"
    dask = [sys.executable, "-m", "distributed.cli.dask_scheduler", "--host", "127.0.0.1"]
    worker = [sys.executable, "-m", "distributed.cli.dask_worker", "--host", "127.0.0.1"]
    with (folder / "log").open("w") as log:
        settings = {
            "stdout": log,
            "stderr": log,
            "text": True,
            "cwd": folder,
            "env": environment(folder),
        }
        words = ["--port", "0", "--no-dashboard", "--scheduler-file", str(file)]
        scheduler = subprocess.Popen([*dask, *words], **settings)  # type: ignore[call-overload]
        until(file.is_file)
        words = ["--nthreads", "1", "--no-nanny", "--no-dashboard", "--scheduler-file", str(file)]
        words += ["--resources", "CPU=1 MEMORY=1e9"]
        workers = [
            subprocess.Popen([*worker, *words], **settings)  # type: ignore[call-overload]
            for _ in range(3)
        ]
        with stopping(*workers, scheduler):
            yield Cluster(
                f"dask://{file}",
                lambda: [psutil.Process(one.pid) for one in workers if one.poll() is None],
            )


@pytest.fixture(scope="module")
def plan(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("plan")
    (folder / "sizes.txt").write_text(SIZES)
    (folder / "plan.toml").write_text(PLAN)
    return folder / "plan.toml"


@pytest.fixture(scope="module")
def local(plan: Path) -> Path:
    """Returns the sweep, made on this machine without faults."""
    out = plan.parent / "local"
    done = subprocess.run(
        [*COMMAND, plan, "--out", out, "--flows", "--quiet"],
        env=environment(plan.parent),
        check=False,
    )
    assert done.returncode == 0
    assert len(Dataset(str(out)).done()) == N_RUNS
    return out


def cmdline(process: psutil.Process) -> list[str]:
    try:
        words: list[str] = process.cmdline()
    except psutil.NoSuchProcess:
        return []
    return words


def contents(folder: Path) -> dict[str, bytes]:
    """Returns all files that the sweep determines."""
    files = (file for file in folder.rglob("*") if file.is_file())
    names = {str(file.relative_to(folder)): file for file in files}
    return {
        name: file.read_bytes()
        for name, file in names.items()
        if not name.startswith("log/") and not name.endswith(".png")
    }


def logs(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(file.read_text()) for file in sorted((folder / "log").glob("*.json"))]


# Ray starts slowly while other tests run.
@pytest.mark.long
@pytest.mark.timeout(300)
@pytest.mark.parametrize("kind", ["ray", "dask"])
def test_workers_and_drivers_may_die_and_the_bytes_are_those_of_a_local_sweep(
    kind: str, plan: Path, local: Path, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    cluster: Cluster = request.getfixturevalue(f"{kind}_cluster")
    out = tmp_path / "out"
    command = [*COMMAND, str(plan), "--out", str(out), "--flows", "--on", cluster.on]
    dataset = Dataset(str(out))

    env = environment(tmp_path)

    killed_command = [*command, "--no-estimate"]
    with subprocess.Popen(killed_command, env=env, stderr=subprocess.PIPE, text=True) as driver:
        until(lambda: len(dataset.done()) >= 15 or driver.poll() is not None)
        # A worker of Ray is idle, and has another name, between two runs.
        while not (workers := cluster.workers()):
            assert driver.poll() is None
            time.sleep(0.01)
        killed = workers[0]
        killed.kill()
        n_then = len(dataset.done())
        until(lambda: len(dataset.done()) >= n_then + 20 or driver.poll() is not None)
        driver.kill()
    n_kept = len(dataset.done())
    assert driver.returncode == -signal.SIGKILL
    assert 35 <= n_kept < N_RUNS
    assert not psutil.pid_exists(killed.pid) or killed.status() == psutil.STATUS_ZOMBIE

    # The second driver requests processors and the estimated memory.
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert " at a time, up to " in done.stderr
    assert f"{n_kept} runs stored, {N_RUNS - n_kept} to run" in done.stderr
    (log,) = logs(out)
    assert (log["kept"], log["ran"], log["open"]) == (n_kept, N_RUNS - n_kept, 0)
    assert log["failures"] == []
    expected = contents(local)
    found = contents(out)
    assert found.keys() == expected.keys()
    assert [name for name in expected if found[name] != expected[name]] == []


@pytest.mark.long
@pytest.mark.timeout(120)
def test_tasks_on_dask_request_the_resources_that_workers_have() -> None:
    resources = {"CPU": 4, "MEMORY": 1e9}
    with LocalCluster(
        n_workers=1,
        threads_per_worker=4,
        processes=False,
        resources=resources,
        protocol="inproc://",
        dashboard_address="127.0.0.1:0",
    ) as cluster:
        engine = DaskEngine(cluster.scheduler_address)
        assert engine.capacity() == Capacity(4, 4, 1e9, 1e9)
        engine.allot(Allotment(2, 2, 400_000_000))
        packer = Packer(wants_flows=False)
        sweep = sweep_of(rm.Plan(SMALL + "[sweep]\nseeds = 2\n"))
        task = packer.pack(sweep.points[0], 1)
        engine.submit(task, packer.blobs)

        def requests() -> list[dict[str, float] | None]:
            states = cluster.scheduler.tasks.items()
            return [one.resource_restrictions for key, one in states if "rampmeter-" in str(key)]

        until(lambda: bool(requests()))
        assert requests() == [{"CPU": 2.0, "MEMORY": 4e8}]
        results: list[TaskResult] = []
        while not results:
            results = engine.collect(1.0)
        assert results[0].state == "ran", results[0].error
        engine.close()
