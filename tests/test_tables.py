"""Tables as data: CSV, LaTeX, Markdown, JSON and data frames of one table have the same values."""

import csv
import io
import json
import math
import re
from pathlib import Path

import polars
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rampmeter as rm
from rampmeter.analysis.confidence import Interval
from rampmeter.cli import COMMANDS, main
from rampmeter.results.notebook import arrow_html
from rampmeter.results.table import Column, ResultTable, by_name, choose, render, split

from . import commands
from .commands import call, error_line
from .conftest import ROOT, SMALL

SPEEDS = ResultTable(
    "speeds",
    "Speeds",
    (
        Column("name"),
        Column("bytes", "sent", form="bytes"),
        Column("rate_gbps", "rate", "Gbit/s", 2),
        Column("n", "flows"),
        Column("drops", "drops"),
    ),
    [
        ("a_b & 50 %", 69_200, Interval(12.5, 0.25, 3), 1_234, {"buffer": 3, "loss": 0}),
        ("<1 BDP", None, Interval(7.0, None, 1), 5, {}),
        ("all", 5, Interval(math.nan, None, 0), 12_345_678, {"loss": 2, "buffer": 1}),
    ],
    sections=frozenset([1]),
)
FORMATS = ("json", "csv", "latex", "markdown")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns a folder with a run, a comparison and a sweep of one small plan."""
    path = tmp_path_factory.mktemp("tables")
    plan, two = rm.Plan(SMALL), "dcpim,ndp"
    vary = {"workload.load": [0.3, 0.5]}
    rm.run(plan, out=path / "run", quiet=True)
    rm.compare(plan, two, out=path / "compare", seeds=2, quiet=True)
    rm.sweep(plan, vary=vary, transports=two, out=path / "sweep", flows=True, quiet=True)
    return path


def ok(*arguments: object) -> str:
    """Returns the standard output of a command that succeeds."""
    return commands.ok(*arguments).stdout


class TestWriters:
    def test_csv_has_one_header_of_keys_and_full_precision(self) -> None:
        assert SPEEDS.to_csv().splitlines() == [
            "name,bytes,rate_gbps,rate_gbps_ci,n,drops",
            "a_b & 50 %,69200,12.5,0.25,1234,buffer=3",
            "<1 BDP,,7.0,,5,",
            "all,5,,,12345678,loss=2;buffer=1",
        ]

    def test_latex_is_escaped_and_intervals_are_aligned(self) -> None:
        assert SPEEDS.to_latex().splitlines() == [
            r"\begin{tabular}{lrr@{}lrr}",
            r"\toprule",
            r" & sent & \multicolumn{2}{c}{\shortstack[c]{rate, \\ Gbit/s}} & flows & drops \\",
            r"\midrule",
            r"a\_b \& 50 \% & 69.2 kB & 12.50 & ${}\pm{}$0.25 & 1\,234 & 3 buffer \\",
            r"$<$1 BDP & -- & 7.00 & & 5 & 0 \\",
            r"\midrule",
            r"all & 5 B & -- & & 12\,345\,678 & 2 loss, 1 buffer \\",
            r"\bottomrule",
            r"\end{tabular}",
        ]

    def test_markdown_has_the_texts_of_the_terminal(self) -> None:
        lines = SPEEDS.to_markdown().splitlines()
        assert lines[0] == "|  | sent | rate, Gbit/s | flows | drops |"
        assert lines[1] == "| --- | ---: | ---: | ---: | ---: |"
        assert lines[2] == "| a_b & 50 % | 69.2 kB | 12.50 ± 0.25 | 1 234 | 3 buffer |"

    def test_frames_and_records_have_the_keys_of_csv(self) -> None:
        keys = SPEEDS.to_csv().splitlines()[0].split(",")
        assert SPEEDS.keys() == keys == [*SPEEDS.records()[0]]
        assert [*SPEEDS.to_pandas().columns] == SPEEDS.to_polars().columns == keys
        assert SPEEDS.to_polars()["n"].to_list() == [1_234, 5, 12_345_678]
        assert SPEEDS.records()[2]["drops"] == {"loss": 2, "buffer": 1}

    def test_a_column_without_values_has_numbers(self) -> None:
        empty = ResultTable("t", "T", (Column("a"), Column("b")), [("x", Interval(1.0, None, 1))])
        assert empty.to_polars()["b_ci"].dtype == polars.Float64

    def test_files_have_the_returned_text(self, tmp_path: Path) -> None:
        for name in ("csv", "latex", "markdown"):
            file = tmp_path / name
            assert getattr(SPEEDS, f"to_{name}")(file) == file.read_text(encoding="utf-8")

    @given(st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"]), max_size=20))
    def test_any_name_is_balanced_latex_and_one_csv_cell(self, name: str) -> None:
        table = ResultTable("t", "T", (Column("a"), Column("b")), [(name, 1)])
        line = table.to_latex().splitlines()[4]
        bare = re.sub(r"\\[{}&%$#_\\]", "", line)
        assert bare.count("{") == bare.count("}")
        assert bare.count("&") == 1
        assert bare.count("$") % 2 == 0
        assert [*csv.reader(io.StringIO(table.to_csv()))][1] == [name, "1"]

    def test_a_row_that_is_a_column_hides_zeros_from_readers_only(self) -> None:
        columns = (Column("run"), Column("failed", "failed", hides_zero=True), Column("n", "n"))
        table = ResultTable("o", "O", columns, [("mine", 0, 3)], is_transposed=True)
        assert table.texts() == [["", "mine"], ["n", "3"]]
        assert table.keys() == ["run", "failed", "n"]

    def test_infinite_values_are_written(self) -> None:
        table = ResultTable("t", "T", (Column("a"), Column("b")), [("x", math.inf)])
        assert r"$\infty$" in table.to_latex()
        assert "inf" in table.to_csv()


class TestSeveralTables:
    def test_titles_are_comments_or_headings(self) -> None:
        two = [SPEEDS, SPEEDS]
        assert render(two, "csv").count("# speeds: Speeds\nname,") == 2
        assert render(two, "latex").count("% Speeds\n\\begin{tabular}") == 2
        assert render(two, "markdown").count("### Speeds\n\n|") == 2
        assert render([SPEEDS], "csv", has_titles=False) == SPEEDS.to_csv()

    def test_readers_see_parts_and_programs_the_whole(self) -> None:
        whole = ResultTable(
            "t", "T", (Column("a"), Column("b")), [("x", 1), ("y", 2)], medium="data"
        )
        tables = [whole, *split(whole, "a")]
        assert [one.title for one in choose(tables, "t", for_readers=True)] == ["x", "y"]
        assert choose(tables, None, for_readers=False) == [whole]
        assert by_name(tables) == {"t": whole}

    def test_an_unknown_table_is_an_error_with_the_known_ones(self) -> None:
        with pytest.raises(rm.PlanError, match="--table: expected one of speeds, got slow"):
            choose([SPEEDS], "slow", for_readers=True)


class TestNotebooks:
    def test_long_tables_show_their_first_and_last_rows(self) -> None:
        rows = [(f"row {idx}", idx) for idx in range(100_000)]
        html = ResultTable("t", "T", (Column("a"), Column("b")), rows)._repr_html_()
        assert "row 0<" in html
        assert "row 99999" in html
        assert "100 000 rows" in html
        assert len(html) < 5_000

    def test_arrow_tables_of_any_size_are_short(self) -> None:
        table = pa.table({"flow": range(50_000), "summary": ["x" * 40_000] * 50_000})
        html = arrow_html(table)
        assert "50 000 rows, 2 columns" in html
        assert "<td>49999</td>" in html
        assert len(html) < 5_000

    def test_results_have_short_representations(self, folder: Path) -> None:
        results = rm.SweepResults(folder / "sweep")
        assert "<table means: 4 rows" in repr(results.tables)
        for one in (rm.Run(folder / "run"), rm.Comparison.load(folder / "compare"), results):
            assert len(one._repr_html_()) < 30_000


class TestExport:
    @pytest.mark.parametrize("kind", ["run", "compare", "sweep"])
    def test_every_kind_of_results_has_slowdown_by_size(
        self, folder: Path, tmp_path: Path, kind: str
    ) -> None:
        for ending in ("csv", "tex", "md", "json", "parquet"):
            out = tmp_path / f"table.{ending}"
            assert "slowdown_by_size" in ok("export", folder / kind, "--out", out)
        rows = [*csv.DictReader((tmp_path / "table.csv").read_text().splitlines())]
        assert {"size", "upper_bytes", "flows", "mean", "mean_ci"} <= rows[0].keys()
        stored = json.loads((tmp_path / "table.json").read_text())["slowdown_by_size"]
        assert [float(row["mean"]) for row in rows if row["mean"]] == [
            row["mean"] for row in stored if row["mean"] is not None
        ]
        assert pq.read_table(tmp_path / "table.parquet").num_rows == len(rows)
        assert (tmp_path / "table.tex").read_text().startswith(r"\begin{tabular}")

    @pytest.mark.parametrize(("kind", "runs"), [("run", 1), ("compare", 4), ("sweep", 4)])
    def test_flows_of_all_runs_are_one_table(
        self, folder: Path, tmp_path: Path, kind: str, runs: int
    ) -> None:
        for ending in ("csv", "parquet"):
            ok("export", folder / kind, "--out", tmp_path / f"f.{ending}", "--table", "flows")
        flows = pq.read_table(tmp_path / "f.parquet")
        assert flows.num_rows == runs * rm.Run(folder / "run").flows.num_rows
        assert len((tmp_path / "f.csv").read_text().splitlines()) == flows.num_rows + 1
        assert kind == "run" or {"transport", "seed"} <= set(flows.column_names)

    def test_all_tables_are_in_one_file(self, folder: Path, tmp_path: Path) -> None:
        out = tmp_path / "all.md"
        ok("export", folder / "compare", "--out", out, "--table", "all")
        assert "### Mean slowdown by flow size" in out.read_text(encoding="utf-8")

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            (("run", "--out", "a.xls"), "--out: expected a name that ends in .csv, .tex"),
            (("run", "--out", "a.csv", "--table", "no"), "--table: expected one of overview"),
            (("run", "--out", "a.tex", "--table", "flows"), "expected csv or parquet for flows"),
            (
                (".", "--out", "a.csv"),
                "expected the folder of a run, a comparison or a sweep, such as run, got",
            ),
        ],
    )
    def test_wrong_requests_are_named(
        self,
        folder: Path,
        monkeypatch: pytest.MonkeyPatch,
        arguments: tuple[str, ...],
        message: str,
    ) -> None:
        monkeypatch.chdir(folder)
        assert message in error_line("export", *arguments)


class TestCommands:
    def test_commands_with_tables_have_formats(self) -> None:
        without = {
            "animate",
            "convert",
            "examples",
            "explain",
            "export",
            "migrate",
            "plot",
            "report",
        }
        without |= {"why"}
        for name in set(COMMANDS) - without - {"schema"}:
            command = main.get_command(None, name)  # type: ignore[arg-type]
            assert command is not None
            options = {option for one in command.params for option in one.opts}
            assert {"--format", "--table", "--json"} <= options, name

    @pytest.mark.parametrize(
        ("arguments", "names"),
        [
            (("check", "small.toml"), "derived, offered"),
            (("run", "small.toml", "--out", "run", "--quiet"), "slowdown_by_size, "),
            (("transports",), "transports"),
            (("papers",), "figures"),
            (("papers", "dcpim", "3", "--from-ledger", "--out", "fig3"), "values, claims"),
            (("papers", "dcpim", "--status"), "status"),
        ],
    )
    def test_the_text_of_each_command_may_be_one_table(
        self, folder: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], names: str
    ) -> None:
        monkeypatch.chdir(folder)
        (folder / "small.toml").write_text(SMALL)
        line = error_line(*arguments, "--table", "nosuch")
        assert line.startswith(f"rampmeter: --table: expected one of {names}")

    @pytest.mark.parametrize("format_", FORMATS)
    def test_every_format_has_the_names_and_keys_of_the_documentation(
        self, folder: Path, monkeypatch: pytest.MonkeyPatch, format_: str
    ) -> None:
        monkeypatch.chdir(folder)
        (folder / "small.toml").write_text(SMALL)
        page = (ROOT / "docs" / "reference" / "tables.md").read_text(encoding="utf-8")
        for arguments in (
            ("run", "small.toml", "--out", "run", "--quiet"),
            ("compare", "small.toml", "--transports", "dcpim,ndp", "--out", "c", "--quiet"),
            ("check", "small.toml"),
            ("transports",),
            ("papers", "dcpim"),
            ("papers", "dcpim", "--status"),
        ):
            text = ok(*arguments, "--format", format_)
            if format_ == "csv":
                blocks = re.findall(r"^# (\w+): .*\n(.*)$", text, re.MULTILINE)
                assert blocks, arguments
                for name, header in blocks:
                    assert f"`{name}`" in page
                    keys = () if name == "fabric" else header.split(",")
                    assert all(f"`{key.removesuffix('_ci')}`" in page for key in keys), header
            elif format_ == "json":
                assert json.loads(text)["tables"]

    @pytest.mark.usefixtures("here")
    def test_values_of_a_figure_are_data(self) -> None:
        page = (ROOT / "docs" / "reference" / "tables.md").read_text(encoding="utf-8")
        text = ok("papers", "dcpim", "3", "--from-ledger", "--format", "csv")
        values, claims = text.split("\n\n")
        for part, name in ((values, "values"), (claims, "claims")):
            title, *lines = part.splitlines()
            assert title.startswith(f"# {name}: ")
            rows = [*csv.DictReader(lines)]
            assert all(f"`{key}`" in page for key in rows[0])
            assert {row["verdict"] for row in rows} <= {
                "match", "miss", "fewer flows", "not judged"
            }  # fmt: skip

    def test_json_by_either_option_is_the_same(
        self, folder: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.chdir(folder)
        (folder / "small.toml").write_text(SMALL)
        assert ok("check", "small.toml", "--json") == ok("check", "small.toml", "--format", "json")
        done = call("check", "none.toml", "--format", "json")
        assert json.loads(done.stderr)["schema"] == "rampmeter.error/1"
        done = call("check", "small.toml", "--json", "--format", "csv")
        assert (done.exit_code, "exclude each other" in done.stderr) == (2, True)

    def test_data_is_alone_on_standard_output(
        self, folder: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.chdir(folder)
        (folder / "small.toml").write_text(SMALL)
        command = ["run", "small.toml", "--out", "run", "--table", "tiers", "--format", "csv"]
        done = call(*command)
        rows = [*csv.DictReader(done.stdout.splitlines())]
        assert {row["tier"] for row in rows} >= {"host-up", "tor-down"}
        assert "warning: " in done.stderr

    def test_the_last_lines_of_a_run_are_its_overview(
        self, folder: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.chdir(folder)
        (folder / "small.toml").write_text(SMALL)
        text = ok("run", "small.toml", "--out", "run", "--quiet")
        last = "\n".join(text.splitlines()[-24:])
        for name in ("Overview", "mean slowdown", "p99 slowdown", "utilisation", "goodput"):
            assert name in last


def test_half_widths_of_intervals_have_one_word() -> None:
    other = re.compile(r"half_widths?\b|_half\b|\"interval\":")
    for file in (ROOT / "python" / "rampmeter").rglob("*.py"):
        assert not other.search(file.read_text(encoding="utf-8")), f"{file}: expected `_ci`"
