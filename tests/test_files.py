"""Files that commands write: missing folders, full disks, devices and links."""

import json
import os
import re
import stat
import subprocess
import sys
from collections.abc import Callable
from errno import ENOENT, ENOSPC, ENOTDIR
from pathlib import Path
from typing import Any

import pytest

import rampmeter as rm
from rampmeter.sweeps.dataset import Dataset
from rampmeter.text.files import replacing, write_text

from .commands import another_user, call, error_line, ok
from .conftest import SMALL

FULL = Path("/dev/full")
"""A device on which no space is left."""
TIMELINE = '[run]\ntimeline = "run.perfetto-trace"\ntimeline-until-us = 40.0\n'
TRACE = "arrival_ps,src,dst,size_bytes\n0,0,1,100\n"

WRITERS = {
    "animate": ("animate", "{run}", "--out", "{out}.html"),
    "check": ("check", "{run}/manifest.json", "--svg", "{out}.svg"),
    "compare": ("compare", "{run}/plan.toml", "--transports=dcpim", "--quiet", "--out", "{out}"),
    "convert": ("convert", "{run}/trace.csv", "{out}.parquet"),
    "export": ("export", "{run}", "--out", "{out}.tex"),
    "export of flows": ("export", "{run}", "--table", "flows", "--out", "{out}.csv"),
    "examples": ("examples", "{out}"),
    "papers": ("papers", "dcpim", "3", "--from-ledger", "--out", "{out}"),
    "plot": ("plot", "{run}", "--kind", "fct-cdf", "--out", "{out}"),
    "report": ("report", "{run}", "--out", "{out}.html"),
    "run": ("run", "{run}/manifest.json", "--quiet", "--out", "{out}"),
    "schema": ("schema", "{out}.json"),
    "sweep": ("sweep", "{run}/plan.toml", "--seeds", "2", "--quiet", "--out", "{out}"),
}
"""Commands that write, with their arguments."""


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns the folder of a run with a timeline, and of a trace."""
    folder = tmp_path_factory.mktemp("results")
    rm.run(rm.Plan(SMALL + TIMELINE), out=folder, quiet=True)
    (folder / "trace.csv").write_text(TRACE)
    (folder / "plan.toml").write_text(SMALL)
    return folder


def arguments(name: str, results: Path, out: Path) -> list[str]:
    return [word.format(run=results, out=out) for word in WRITERS[name]]


@pytest.mark.parametrize("name", WRITERS)
def test_commands_create_the_missing_folders_of_their_output(
    name: str, results: Path, here: Path
) -> None:
    ok(*arguments(name, results, here / "new/folder/x"))
    assert [path.stem for path in (here / "new/folder").iterdir()] == ["x"]


@pytest.mark.parametrize("name", WRITERS)
def test_errors_of_output_begin_with_its_name_and_a_plain_cause(
    name: str, results: Path, here: Path
) -> None:
    (here / "file").touch()
    line = error_line(*arguments(name, results, here / "file/x"))
    place = here / "file"
    assert line == f"rampmeter: {place}: expected a folder, got a file [file-access]"


@pytest.mark.parametrize("name", WRITERS)
def test_folders_without_permission_are_errors_that_leave_nothing(
    name: str, results: Path, here: Path
) -> None:
    (here / "closed").mkdir(mode=0o555)
    for folder in (here, *here.parents, results, *results.parents):
        if folder.stat().st_uid == os.geteuid():
            folder.chmod(folder.stat().st_mode | 0o055)
    with another_user():
        line = error_line(*arguments(name, results, here / "closed/x"))
        below = error_line(*arguments(name, results, here / "closed/new/x"))
    start = re.escape(f"rampmeter: {here}/closed/")
    cause = r"(cannot be created: )?Permission denied \[file-access\]"
    assert re.fullmatch(rf"{start}x\S*: {cause}", line), line
    assert re.fullmatch(rf"{start}new\S*: cannot be created: Permission denied .*", below), below
    assert not [*(here / "closed").iterdir()]


def test_calls_that_cannot_write_name_the_file(small_run: rm.Run, here: Path) -> None:
    (here / "file").touch()
    plan = rm.Plan(SMALL)
    path = here / "file" / "x"
    calls: list[Callable[[], object]] = [
        lambda: plan.save(path),
        lambda: rm.run(plan, out=path, quiet=True),
        lambda: rm.compare(plan, "dcpim", out=path, quiet=True),
        lambda: rm.sweep(plan, seeds=2, out=path, quiet=True),
        lambda: small_run.tables["overview"].to_csv(path),
        lambda: small_run.tables["overview"].to_latex(path),
        lambda: rm.Comparison({"a": small_run}).save(path),
    ]
    for one in calls:
        with pytest.raises(rm.ResultError, match="expected a folder, got a file") as caught:
            one()
        assert isinstance(caught.value, OSError)
        assert (caught.value.file, caught.value.errno) == (str(here / "file"), ENOTDIR)


@pytest.mark.parametrize(
    "words",
    [
        ("animate", "{run}", "--out", "/dev/full"),
        ("export", "{run}", "--format", "csv", "--out", "/dev/full"),
        ("export", "{run}", "--format", "json", "--out", "/dev/full"),
        ("export", "{run}", "--format", "parquet", "--out", "/dev/full"),
        ("export", "{run}", "--table", "flows", "--format", "parquet", "--out", "/dev/full"),
        ("export", "{run}", "--table", "flows", "--format", "csv", "--out", "/dev/full"),
        ("report", "{run}", "--out", "/dev/full"),
        ("schema", "/dev/full"),
    ],
)
def test_a_full_disk_is_an_error_with_the_name_of_the_file_and_devices_remain(
    words: tuple[str, ...], results: Path
) -> None:
    line = error_line(*(word.format(run=results) for word in words))
    assert line == "rampmeter: /dev/full: No space left on device [file-access]"
    assert stat.S_ISCHR(FULL.stat().st_mode)


LIMITED = """\
import resource, signal, sys
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv.pop(1)),) * 2)
from rampmeter.cli import main
main()
"""
"""The command with a limit of the size of files, which is the first argument."""
PLAN = SMALL.replace("flows = 200", "flows = 2000")
COLLECTED = PLAN + "[run]\nlinks = true\nrates-us = 10\n"


@pytest.mark.parametrize(
    ("limit", "file", "words"),
    [
        (4_000, "new/", ("run", "big.toml", "--out", "new", "--quiet")),
        (60_000, "new/", ("run", "big.toml", "--out", "new", "--quiet")),
        (
            4_000,
            "new/",
            ("compare", "big.toml", "--out", "new", "--quiet", "--transports", "dcpim,ndp"),
        ),
        (4_000, "new.parquet", ("convert", "trace.csv", "new.parquet")),
        (4_000, "new.csv", ("convert", "trace.csv", "new.csv")),
        (4_000, "old.parquet", ("convert", "trace.csv", "old.parquet")),
    ],
    ids=str,
)
def test_writes_of_the_simulator_that_fail_have_a_plain_cause_and_leave_nothing(
    limit: int, file: str, words: tuple[str, ...], here: Path
) -> None:
    (here / "big.toml").write_text(COLLECTED)
    rows = (f"{1000 * idx},{idx % 7},7,{idx * 37 % 9999 + 1}\n" for idx in range(20_000))
    (here / "trace.csv").write_text(TRACE.partition("\n")[0] + "\n" + "".join(rows))
    (here / "old.parquet").write_text("former")
    command = [sys.executable, "-c", LIMITED, str(limit), *words]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 2
    line = rf"rampmeter: {file}\S*: File too large \[file-access\]\n"
    assert re.fullmatch(line, done.stderr), done.stderr
    assert (here / "old.parquet").read_text() == "former"
    assert not [*here.rglob("*partial*"), *here.rglob("manifest.json"), *here.glob("new.*")]


def test_a_sweep_on_a_full_disk_names_the_temporary_file(here: Path) -> None:
    (here / "small.toml").write_text(SMALL)
    words = ["sweep", "small.toml", "--seeds=2", "--jobs=1", "--out=new", "--quiet"]
    command = [sys.executable, "-c", LIMITED, "1000", *words]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 1
    assert re.search(r" /\S+/results/flows.parquet: File too large\n$", done.stderr), done.stderr
    assert not [*here.glob("new/runs/*/*")]


def test_datasets_on_a_full_disk_name_the_file_and_have_no_part_of_it(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dataset = Dataset(str(here / "new"))

    def write_half(path: str, data: bytes) -> None:
        Path(path).write_bytes(data[: len(data) // 2])
        raise OSError(ENOSPC, "No space left on device", path)

    monkeypatch.setattr(dataset._files, "pipe_file", write_half)
    with pytest.raises(rm.ResultError, match=r"new/sweep.json: No space left on device") as caught:
        dataset.put_identity({"keys": []})
    assert caught.value.errno == ENOSPC
    assert not [*(here / "new").iterdir()]


def test_errors_of_the_system_have_their_file_in_json(results: Path) -> None:
    error = json.loads(call("report", results, "--out", FULL, "--json").stderr)
    assert (error["file"], error["code"]) == (str(FULL), "file-access")


@pytest.mark.parametrize("command", ["schema", "explain", "transports"])
def test_a_full_disk_of_the_output_is_an_error_with_a_name(command: str) -> None:
    with FULL.open("w") as full:
        words = [sys.executable, "-m", "rampmeter", command]
        done = subprocess.run(words, stdout=full, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 2
    line = "rampmeter: standard output: No space left on device [file-access]\n"
    assert done.stderr == line


@pytest.mark.parametrize("kind", ["png", "pdf", "svg"])
def test_figures_are_written_whole_or_not_at_all(small_run: rm.Run, here: Path, kind: str) -> None:
    (here / f"fct_cdf.{kind}").write_text("former")
    words = ["plot", small_run.path, "--kind", "fct-cdf", "--format", kind, "--out", here]
    command = [sys.executable, "-c", LIMITED, "4000", *map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 2
    assert re.search(r"File too large \[file-access\]$", done.stderr), done.stderr
    assert [path.name for path in here.iterdir()] == [f"fct_cdf.{kind}"]
    ok("plot", *words[1:])
    assert len((here / f"fct_cdf.{kind}").read_bytes()) > 4000


def test_figures_have_the_names_of_matplotlib(small_run: rm.Run, here: Path) -> None:
    figure = small_run.plot.fct_cdf()
    figure.savefig(here / "fct")
    figure.savefig(fname=str(here / "fct.x"), format="pdf")
    assert sorted(path.name for path in here.iterdir()) == ["fct.png", "fct.x"]
    assert (here / "fct.x").read_bytes().startswith(b"%PDF")


def test_figures_that_cannot_be_saved_name_their_file(small_run: rm.Run, here: Path) -> None:
    with pytest.raises(rm.ResultError, match=r"no/fct.png: No such file or directory") as caught:
        small_run.plot.fct_cdf().savefig(here / "no/fct.png")
    assert (caught.value.file, caught.value.errno) == (str(here / "no/fct.png"), ENOENT)


@pytest.mark.parametrize(
    ("convert", "missing"),
    [
        (lambda: rm.convert("no.csv", "csv", "new/out.csv"), "no.csv"),
        (lambda: rm.convert("a.csv", "csv", "new/out.csv", topology="no.toml"), "no.toml"),
        (lambda: rm.convert("a.csv", "csv", "new/out.csv", groups_file="no.json"), "no.json"),
    ],
)
def test_conversions_name_the_file_that_is_missing_and_leave_no_folder(
    convert: Callable[[], Any], missing: str, here: Path
) -> None:
    (here / "a.csv").write_text(TRACE)
    with pytest.raises(rm.PlanError) as caught:
        convert()
    assert str(caught.value) == f"{missing}: No such file or directory"
    assert not (here / "new").exists()


def test_a_failed_write_leaves_the_former_file_and_no_new_folder(here: Path) -> None:
    former, new = here / "a.txt", here / "new/folder/b.txt"
    former.write_text("former")
    for path in (former, new):
        with pytest.raises(KeyError):
            fail_after_half(path)
    assert [*here.iterdir()] == [former]
    assert former.read_text() == "former"


def fail_after_half(path: Path) -> None:
    with replacing(path) as partial:
        partial.write_text("half")
        raise KeyError


def test_links_remain_and_their_files_are_replaced(here: Path) -> None:
    (here / "real.txt").touch()
    (here / "link.txt").symlink_to("real.txt")
    write_text(here / "link.txt", "text")
    assert (here / "link.txt").is_symlink()
    assert (here / "real.txt").read_text() == "text"


def test_a_replaced_file_keeps_its_mode(here: Path) -> None:
    file = here / "private.toml"
    file.touch(0o600)
    with replacing(file) as partial:
        partial.write_text("text")
        assert stat.S_IMODE(partial.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_a_file_of_the_user_with_a_similar_name_stays(here: Path) -> None:
    (here / "a.partial.txt").write_text("of the user")
    write_text(here / "a.txt", "text")
    assert (here / "a.partial.txt").read_text() == "of the user"
    assert len([*here.iterdir()]) == 2
