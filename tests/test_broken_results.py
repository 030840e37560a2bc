"""Broken and foreign result folders: each reader raises one error of this package, with the file.

A small run with every kind of table is broken: each file in each way, and each value of each JSON
file. Readers may succeed, since not every reader needs every file.
"""

import json
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import matplotlib.pyplot as plt
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import rampmeter as rm
from rampmeter.report import find
from rampmeter.results.shapes import NEEDED, NULLABLE

from .commands import another_user, call, error_line
from .conftest import SMALL

PLAN: Final = """\
seed = 1
[topology]
kind = "star"
hosts = 4
[transport]
name = "dcpim"
[workload]
pattern = "mix"
[[workload.parts]]
pattern = "collective"
operation = "all-reduce"
algorithm = "ring"
vector-bytes = 50_000
[[workload.parts]]
pattern = "incast"
fan = 3
flow-bytes = 20_000
rounds = 1
[fabric]
shared-buffer-bytes = 1_000_000
pfc = { threshold = "static", xoff-bytes = 100_000 }
[run]
blame = true
links = true
paths = true
rates-us = 5
timeline = "run.perfetto-trace"
[faults]
outages = [{ link = "h0-s0", from-us = 5, until-us = 15 }]
rerouting-us = 5
"""

Break = Callable[[Path], None]


def cut(file: Path) -> None:
    """Leaves the first half of a file."""
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])


def scramble(file: Path) -> None:
    """Changes bytes in the middle of a file."""
    data = bytearray(file.read_bytes())
    for idx in range(len(data) // 4, len(data) // 2):
        data[idx] ^= 0x5A
    file.write_bytes(data)


def empty(file: Path) -> None:
    file.write_bytes(b"")


def write_list(file: Path) -> None:
    file.write_text("[1, 2]")


def make_folder(file: Path) -> None:
    file.unlink()
    file.mkdir()


BREAKS: Final[Mapping[str, Break]] = {
    "missing": Path.unlink,
    "empty": empty,
    "cut": cut,
    "scrambled": scramble,
    "list": write_list,
    "folder": make_folder,
}


def draw(run: rm.Run) -> None:
    """Draws every plot of a run."""
    for plot in run.plot.available().values():
        plt.close(plot())


def read_all(run: rm.Run) -> None:
    """Reads every property of a run."""
    for name in vars(rm.Run):
        if not name.startswith("_"):
            getattr(run, name)


def command(*arguments: object) -> Callable[[Path], None]:
    """Returns a reader: a command on the folder, whose errors must be lines of code 2."""

    def read(folder: Path) -> None:
        result = call(arguments[0], folder, *arguments[1:], "--json")
        if result.exit_code not in (0, 1):
            assert result.exit_code == 2, result.exception
            assert json.loads(result.stderr)["schema"] == "rampmeter.error/1"
        else:
            assert result.exception is None or isinstance(result.exception, SystemExit)

    return read


READERS: Final[Mapping[str, Callable[[Path], object]]] = {
    "properties": lambda folder: read_all(rm.Run(folder)),
    "tables": lambda folder: [table.texts() for table in rm.Run(folder).tables.values()],
    "plots": lambda folder: draw(rm.Run(folder)),
    "animation": lambda folder: rm.Run(folder).animate(),
    "comparison": lambda folder: rm.Comparison({"a": rm.Run(folder), "b": rm.Run(folder)}).tables,
    "warnings": lambda folder: rm.Run(folder).warnings,
    "section": lambda folder: find([folder], folder.parent),
    "plan": lambda folder: rm.Plan.load(folder / "manifest.json").check(),
    "report": command("report", "--out", "report.html"),
    "export": command("export", "--out", "all.json", "--table", "all"),
    "export flows": command("export", "--out", "flows.csv", "--table", "flows"),
    "plot": command("plot", "--kind", "slowdown-by-size"),
    "why": command("why"),
    "diff": lambda folder: command("diff", folder)(folder),
}


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> rm.Run:
    """Returns a run with every kind of table."""
    return rm.run(rm.Plan(PLAN), out=tmp_path_factory.mktemp("whole") / "run", quiet=True)


@pytest.fixture
def folder(whole: rm.Run, here: Path) -> Path:
    """Returns a copy of its folder."""
    return Path(shutil.copytree(whole.path, here / "run"))


def errors_of(folder: Path, names: Iterable[str] = READERS) -> list[str]:
    """Calls readers of a folder; returns their errors, each of which names the folder."""
    found = []
    for name in names:
        try:
            READERS[name](folder)
        except (rm.PlanError, rm.ResultError) as error:
            found.append(str(error))
        except Exception as error:
            raise AssertionError(f"{name}: {error!r}") from error
    assert all(error.startswith(str(folder)) for error in found), found
    return found


def test_whole_results_have_no_error(folder: Path) -> None:
    assert errors_of(folder) == []


FILES: Final = (
    *("summary.json", "manifest.json", "identity.json", "run.perfetto-trace"),
    *(name for name in NEEDED if name != "drops.parquet"),
)


@pytest.mark.parametrize("file", FILES)
def test_each_broken_file_is_one_error_that_names_it(
    folder: Path, whole: rm.Run, file: str
) -> None:
    for way, break_ in BREAKS.items():
        break_(folder / file)
        errors = errors_of(folder, ("properties", "tables", "animation", "plan", "why"))
        if way != "missing" and file != "identity.json":
            assert any(error.startswith(str(folder / file)) for error in errors), (way, errors)
        assert not [error for error in errors if "magic" in error or "thrift" in error]
        shutil.rmtree(folder)
        shutil.copytree(whole.path, folder)


@pytest.mark.parametrize("way", BREAKS)
def test_commands_report_broken_files_as_lines(folder: Path, way: str) -> None:
    for file in ("flows.parquet", "summary.json"):
        BREAKS[way](folder / file)
        errors_of(folder, ("report", "export", "export flows", "plot", "plots", "comparison"))


@pytest.mark.parametrize("file", NEEDED)
def test_columns_that_are_missing_or_of_another_type_are_named(folder: Path, file: str) -> None:
    path = folder / file
    if not path.exists():
        pytest.fail(f"the run has no {file}")
    table = pq.read_table(path)
    for idx, (name, column) in enumerate(zip(table.column_names, table.columns, strict=True)):
        is_text = pa.types.is_string(column.type)
        none = pa.nulls(len(table), column.type)
        other = pa.array([1] * len(table) if is_text else ["x"] * len(table))
        for broken in (
            table.drop_columns([name]),
            table.set_column(idx, name, other),
            *([] if name in NULLABLE else [table.set_column(idx, name, none)]),
        ):
            pq.write_table(broken, path)
            errors = errors_of(folder, ("properties", "tables"))
            assert all(name in error for error in errors), (name, errors)


def paths_of(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yields the paths to all values of JSON; of lists those of the first item."""
    if path:
        yield path
    first = dict(enumerate(value[:1])) if isinstance(value, list) else value
    if isinstance(first, dict):
        for key, inner in first.items():
            yield from paths_of(inner, (*path, key))


OTHERS: Final[tuple[Any, ...]] = ("missing", None, [1], "x", {"a": 1})
ALIKE: Final = {"acked", "figure", "decades", "deciles", "classes", "p50", "p99", "max"}
"""Keys of statistics that are read as others are."""


@pytest.mark.parametrize("file", ["summary.json", "manifest.json"])
@pytest.mark.parametrize("other", OTHERS, ids=str)
def test_values_of_another_type_are_named(folder: Path, file: str, other: Any) -> None:
    text = (folder / file).read_text()
    for path in paths_of(json.loads(text)):
        if ALIKE & {*path[1:]}:
            continue
        whole = json.loads(text)
        *parents, last = path
        holder = whole
        for key in parents:
            holder = holder[key]
        if other == "missing":
            del holder[last]
        else:
            holder[last] = other
        (folder / file).write_text(json.dumps(whole))
        for error in errors_of(folder, ("tables", "warnings")):
            assert error.startswith(str(folder / file)), (path, error)


LONG: Final = "x" * 5000


def test_a_path_that_the_file_system_cannot_have_is_one_error() -> None:
    for call_ in (rm.Run, rm.Comparison.load, rm.SweepResults, rm.Plan.load):
        with pytest.raises((rm.ResultError, rm.PlanError), match=r"^\S*x+.*: File name too long$"):
            call_(LONG)
    for name in ("report", "plot", "why", "check", "run"):
        assert error_line(name, LONG).count("File name too long") == 1, name
    for arguments in (("export", LONG, "--out", "a.csv"), ("diff", LONG, LONG)):
        assert error_line(*arguments).count("File name too long") == 1, arguments


def test_a_folder_without_permission_is_one_error(folder: Path) -> None:
    errors_of(folder)
    folder.chmod(0)
    try:
        with another_user():
            errors = errors_of(folder, ("properties", "tables", "plan", "comparison"))
            for name, rest in {"plot": (), "why": (), "export": ("--out", "a.csv")}.items():
                assert "Permission denied" in error_line(name, folder, *rest)
    finally:
        folder.chmod(0o700)
    assert len(errors) == 4
    assert all("Permission denied" in error for error in errors), errors


@pytest.mark.parametrize("way", BREAKS)
def test_broken_comparisons_and_sweeps_are_errors_that_name_the_file(here: Path, way: str) -> None:
    (here / "small.toml").write_text(SMALL.replace("flows = 200", "flows = 20"))
    rm.compare("small.toml", "dcpim,phost", out="c", quiet=True)
    rm.sweep("small.toml", vary={"workload.load": [0.3]}, seeds=1, out="s", quiet=True)
    BREAKS[way](here / "c/comparison.json")
    (row,) = Path("s/runs").rglob("*.parquet")
    BREAKS[way](here / row)
    with pytest.raises(rm.ResultError, match=r"^c\b"):
        _ = rm.Comparison.load("c").tables
    with pytest.raises(rm.ResultError, match=r"^\S*/s(/runs/\S*)?:|^s:"):
        _ = rm.SweepResults("s").tables
    for name in ("c", "s"):
        # Without its record, a comparison is a folder of runs.
        report = () if way in ("missing", "folder") else (("report",),)
        for arguments in (*report, ("plot",), ("export", "--out", "a.csv", "--table", "all")):
            error_line(arguments[0], name, *arguments[1:])
