"""Plans: parts, overrides, files and errors."""

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rampmeter as rm
from rampmeter import papers
from rampmeter.plan import schema
from rampmeter.plan.plan import compact_plan, parse_override
from rampmeter.text.toml import TomlValue, dumps, parse_value

from .commands import error_line
from .conftest import FIG3, SMALL


class TestParts:
    def test_fields_become_keys_of_the_plan(self) -> None:
        plan = rm.Plan.of(
            topology=rm.leaf_spine(2, 4, 2, core_gbps=400.0),
            transport=rm.DcPim(r=3, k=2, preset="reference", options={"beta": 1.5}),
            workload=rm.imc10(load=0.6, flows=10),
            fabric=rm.Fabric(buffer_bytes=1_000_000),
            seed=7,
        )
        assert plan.table() == {
            "seed": 7,
            "topology": {
                "kind": "leaf-spine",
                "racks": 2,
                "hosts-per-rack": 4,
                "spines": 2,
                "core-gbps": 400.0,
            },
            "transport": {
                "name": "dcpim",
                "preset": "reference",
                "matching-rounds": 3,
                "channels": 2,
                "beta": 1.5,
            },
            "workload": {"pattern": "all-to-all", "sizes": "imc10", "load": 0.6, "flows": 10},
            "fabric": {"buffer-bytes": 1_000_000},
        }

    @pytest.mark.parametrize(
        "topology",
        [
            rm.leaf_spine(2, 2, 1),
            rm.fat_tree(4, pods=3),
            rm.star(4),
            rm.dumbbell(3),
            rm.pod(4),
        ],
        ids=lambda part: type(part).__name__,
    )
    @pytest.mark.parametrize(
        "workload",
        [
            rm.web_search(0.5, 10),
            rm.data_mining(0.5, 10),
            rm.all_to_all({"fixed": 1460}, 0.5, 10),
            rm.Permutation(sizes="imc10", load=0.5, flows=10),
            rm.Incast(fan=2, flow_bytes=1000),
            rm.collective("all-reduce", 9_000, algorithm="tree", chunks=2, rounds=2, pause_us=3),
            rm.collective("all-to-all-v", matrix=[[0, 5], [6, 0]], hosts=range(1, 3)),
        ],
        ids=lambda part: str(part.table()),
    )
    def test_every_table_is_accepted_by_the_simulator(
        self, topology: rm.Star, workload: rm.AllToAll
    ) -> None:
        plan = rm.Plan.of(
            topology=topology,
            transport=rm.DcPim(r=4, k=4),
            workload=workload,
            fabric=rm.Fabric(shared_buffer_bytes=10**7, alpha=2.0, spray="random"),
            measure=rm.Measure(warmup_flows=1),
            run=rm.RunOptions(
                sample_us=5.0, paranoid=True, capture="a.pcapng", capture_hosts=[0, 1]
            ),
        )
        assert plan.check()["seed"] == 1


class TestOverrides:
    def test_overrides_change_values_and_add_tables(self) -> None:
        plan = rm.Plan(SMALL).with_(("workload.load", 0.7), ("fabric.spray", "ecmp"))
        assert plan.get("workload.load") == 0.7
        assert plan.get("fabric") == {"spray": "ecmp"}
        assert plan.get("workload.sizes") == "imc10"

    def test_a_plan_without_overrides_keeps_its_text(self) -> None:
        assert rm.Plan("# mine\nseed = 1\n").with_().text == "# mine\nseed = 1\n"

    def test_a_value_has_no_keys(self) -> None:
        with pytest.raises(rm.PlanError, match=r"seed.x: expected seed to be a table, got 1"):
            rm.Plan(SMALL).with_(("seed.x", 1))

    @pytest.mark.parametrize(
        ("text", "value"),
        [
            ("0.7", 0.7),
            ("100_000", 100_000),
            ("true", True),
            ("imc10", "imc10"),
            ('"imc10"', "imc10"),
            ("{ fixed = 1460 }", {"fixed": 1460}),
            ("[1, 2]", [1, 2]),
            ("", ""),
            ("1\nx = 2", "1\nx = 2"),
        ],
    )
    def test_values_are_toml_or_plain_strings(self, text: str, value: object) -> None:
        assert parse_value(text) == value

    @pytest.mark.parametrize("text", ["load", "=1", ".load=1", "a..b=1", ""])
    def test_overrides_without_key_and_value_are_refused(self, text: str) -> None:
        with pytest.raises(rm.PlanError, match="expected key=value"):
            parse_override(text)


class TestArguments:
    """Errors of plans without a file name the keys of the call's tables, as plans spell them."""

    @pytest.mark.parametrize(
        ("parts", "message"),
        [
            (
                {"topology": rm.star("8")},  # type: ignore[arg-type]
                'topology.hosts: expected a whole number, got "8"',
            ),
            ({"transport": rm.DcPim(beta=-1.5)}, "transport.beta: expected a number from 0.1"),
            (
                {"transport": rm.DcPim(short_flow_packets=-1)},
                "transport.short-flow-packets: expected 0 to",
            ),
            ({"workload": rm.imc10(-0.5, 10)}, "workload.load: expected a load above 0"),
            ({"workload": {"pattern": "ring"}}, "workload.pattern: expected one of all-to-all"),
            ({"run": {"drain-us": -1}}, "run.drain-us: expected a number"),
        ],
    )
    def test_the_key_is_named(self, parts: dict[str, Any], message: str) -> None:
        good = {"topology": rm.star(4), "transport": rm.DcPim(), "workload": rm.imc10(0.5, 10)}
        with pytest.raises(rm.PlanError) as error:
            rm.run(**{**good, **parts}, quiet=True)
        assert str(error.value).startswith(message)
        assert "line" not in str(error.value)

    def test_unknown_tables_are_refused(self) -> None:
        with pytest.raises(TypeError, match="measur"):
            rm.run(topology=rm.star(4), measur={"warmup-flows": 2})  # type: ignore[call-arg]

    @pytest.mark.parametrize("value", [object(), b"bytes", {1, 2}])
    def test_values_of_other_types_are_refused_by_field(self, value: Any) -> None:
        with pytest.raises(TypeError, match=r"^Star\(hosts=...\): expected a number"):
            rm.Plan.of(topology=rm.star(value))

    def test_arguments_of_other_types_are_refused_by_type(self) -> None:
        with pytest.raises(TypeError, match=r"workload: expected a part .* numpy.ndarray"):
            rm.Plan.of(workload=np.zeros(1000))  # type: ignore[arg-type]

    OTHER_NUMBERS: tuple[Any, ...] = (
        np.int64(8),
        np.float32(1.3),
        np.uint32(3),
        np.int16(0),
        Decimal("20.5"),
    )

    def test_numpy_numbers_and_paths_are_accepted(self, tmp_path: Path) -> None:
        trace = tmp_path / "t.csv"
        trace.write_text("arrival_us,src,dst,size_bytes\n0,0,1,100\n")
        hosts, beta, seed, warmup, drain = self.OTHER_NUMBERS
        plan = rm.Plan.of(
            topology=rm.star(hosts),
            transport=rm.DcPim(beta=beta),
            workload=rm.Trace(file=trace),
            seed=seed,
        ).with_(("measure.warmup-flows", warmup), ("run.drain-us", drain))
        complete = plan.check()
        assert (complete["seed"], complete["topology"]["hosts"]) == (3, 8)
        assert complete["transport"]["beta"] == 1.3
        assert complete["run"]["drain-us"] == 20.5
        assert plan.input_digests().keys() == {str(trace)}


class TestManifests:
    """A result's plan can be run again from its manifest."""

    def trace(self, folder: Path) -> Path:
        (folder / "t.csv").write_text("arrival_us,src,dst,size_bytes\n0,0,1,100\n3,1,2,5000\n")
        plan = {**rm.Plan(SMALL).table(), "workload": {"pattern": "trace", "file": "t.csv"}}
        file = folder / "plan.toml"
        file.write_text(dumps(plan))
        return file

    @pytest.mark.parametrize("transport", [about["name"] for about in schema.transports()])
    def test_a_run_again_gives_the_same_bytes(self, tmp_path: Path, transport: str) -> None:
        first, second = tmp_path / "first", tmp_path / "second"
        plan = rm.Plan.load(self.trace(tmp_path)).with_(("transport.name", transport))
        rm.run(plan, out=first, quiet=True)
        again = rm.Plan.load(first / "manifest.json")
        assert again.check() == plan.check()
        rm.run(again, out=second, quiet=True)
        for name in ("flows.parquet", "series.parquet", "queues.parquet", "summary.json"):
            assert (first / name).read_bytes() == (second / name).read_bytes(), name

    def test_a_manifest_may_move_with_its_inputs(self, tmp_path: Path) -> None:
        (tmp_path / "old").mkdir()
        rm.run(self.trace(tmp_path / "old"), out=tmp_path / "old/out", quiet=True)
        (tmp_path / "old").rename(tmp_path / "new")
        assert rm.Plan.load(tmp_path / "new/out/manifest.json").check()["workload"]

    def test_changed_input_files_are_an_error(self, tmp_path: Path) -> None:
        rm.run(self.trace(tmp_path), out=tmp_path / "out", quiet=True)
        (tmp_path / "t.csv").write_text("arrival_us,src,dst,size_bytes\n0,0,1,200\n")
        with pytest.raises(rm.PlanError, match=r"t\.csv has changed since the run"):
            rm.Plan.load(tmp_path / "out/manifest.json")
        (tmp_path / "t.csv").unlink()
        with pytest.raises(rm.PlanError, match=r"t\.csv, which the run has read, is missing"):
            rm.Plan.load(tmp_path / "out/manifest.json")

    def test_other_json_is_refused(self, small_run: rm.Run) -> None:
        with pytest.raises(rm.PlanError, match=r"summary\.json: expected a manifest\.json"):
            rm.Plan.load(small_run.path / "summary.json")


class TestErrors:
    def test_a_missing_file_is_named(self, tmp_path: Path) -> None:
        with pytest.raises(rm.PlanError, match=r"none\.toml: No such file"):
            rm.Plan.load(tmp_path / "none.toml")

    def test_a_file_that_is_no_text_is_an_error(self, tmp_path: Path) -> None:
        (tmp_path / "a.toml").write_bytes(b"\xff\xfe")
        with pytest.raises(rm.PlanError, match=r"a\.toml: expected UTF-8 text"):
            rm.Plan.load(tmp_path / "a.toml")

    def test_bad_toml_names_file_and_line(self, tmp_path: Path) -> None:
        (tmp_path / "a.toml").write_text("seed = 1\nload = = 2\n")
        with pytest.raises(rm.PlanError, match=r"a\.toml: .*line 2"):
            rm.Plan.load(tmp_path / "a.toml")

    def test_the_simulators_messages_name_the_file(self, plan_file: Path) -> None:
        plan = rm.Plan.load(plan_file).with_(("workload.load", -1))
        with pytest.raises(rm.PlanError, match=rf"^{plan_file}: workload.load: expected") as error:
            plan.check()
        assert "got -1" in str(error.value)

    def test_an_error_has_its_parts_as_attributes(self, tmp_path: Path) -> None:
        (tmp_path / "a.toml").write_text(SMALL.replace("load = 0.5", "load = 7.0"))
        plan = rm.Plan.load(tmp_path / "a.toml")
        with pytest.raises(rm.PlanError) as raised:
            plan.check()
        error = raised.value
        assert (error.code, error.key) == ("plan-value", "workload.load")
        assert (error.expected, error.got) == ("a load above 0, at most 2", "7")
        assert (error.file, error.column) == (plan.origin, None)
        line = error.line or 0
        assert plan.text.splitlines()[line - 1] == "load = 7.0"
        assert str(error) == f"{plan.origin}: line {line}: {error.key}: {error.problem}"

    def test_an_error_of_syntax_has_a_column(self) -> None:
        plan = rm.Plan(SMALL + "\n[run]\ndrain-us = 'soon'\n", origin="b")
        with pytest.raises(rm.PlanError) as raised:
            plan.check()
        error = raised.value
        assert (error.code, error.file, error.key) == ("plan-syntax", "b", "run.drain-us")
        assert error.got == '"soon"'
        assert error.column == len("drain-us = '")

    def test_an_error_of_arguments_has_no_line(self) -> None:
        with pytest.raises(rm.PlanError) as raised:
            rm.run(
                topology={"kind": "star", "hosts": 2.5},
                transport={"name": "ideal"},
                workload=rm.imc10(0.5),
            )
        error = raised.value
        assert (error.file, error.key, error.line) == (None, "topology.hosts", None)

    def test_unknown_keys_are_refused(self) -> None:
        with pytest.raises(rm.PlanError, match=r"run.hostz: expected one of .*, got hostz"):
            rm.Plan(SMALL).with_(("run.hostz", 9)).check()


def test_input_files_are_identified_by_their_contents(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("a")
    parts: list[TomlValue] = [{"file": "t.csv"}, {"sizes": {"cdf": "missing.txt"}}]
    plan = rm.Plan.of(base=tmp_path, workload={"parts": parts})
    before = plan.input_digests()
    (tmp_path / "t.csv").write_text("b")
    assert list(before) == ["t.csv"]
    assert plan.input_digests() != before


def test_overrides_do_not_change_each_other_s_values() -> None:
    workload: dict[str, TomlValue] = {"pattern": "incast", "fan": 1}
    plan = rm.Plan("seed = 1").with_(("workload", workload), ("workload.fan", 5))
    assert (plan.get("workload.fan"), workload["fan"]) == (5, 1)


class TestSweepTable:
    TABLES = """\
[sweep]
seeds = 3
[sweep.grid]
"workload.load" = [
    0.3,
    0.5,
]
[[sweep.points]]
"workload.flows" = 10
"""

    def test_a_sweep_table_is_no_part_of_a_run(self) -> None:
        for text in (SMALL + self.TABLES, self.TABLES + SMALL.partition("\n")[2]):
            plan = rm.Plan(text)
            assert plan.sweep is not None
            assert plan.sweep["grid"] == {"workload.load": [0.3, 0.5]}
            assert "sweep" not in plan.without_sweep().table()
            complete = plan.check()
            assert complete == rm.Plan(SMALL).check()

    def test_errors_name_the_right_line(self) -> None:
        text = self.TABLES + "[topology]\nkind = 3\n"
        with pytest.raises(rm.PlanError, match=r"line 11, column 8"):
            rm.Plan(text).check()

    @pytest.mark.parametrize("line", ["sweep = { seeds = 3 }\n", "sweep.seeds = 3\n"])
    def test_a_sweep_table_may_be_on_one_line(self, line: str) -> None:
        plan = rm.Plan(line + SMALL)
        assert plan.sweep == {"seeds": 3}
        assert plan.check() == rm.Plan(SMALL).check()

    def test_a_sweep_table_can_be_overridden(self) -> None:
        plan = rm.Plan(SMALL + self.TABLES).with_(("sweep.seeds", 5), ("workload.load", 0.7))
        assert plan.sweep is not None
        assert (plan.sweep["seeds"], plan.get("workload.load")) == (5, 0.7)
        assert rm.Plan(SMALL).with_(("sweep.seeds", 5)).sweep == {"seeds": 5}

    def test_a_sweep_must_be_a_table(self) -> None:
        plan = rm.Plan("sweep = 3\n" + SMALL)
        with pytest.raises(rm.PlanError, match="sweep: expected a table, got 3"):
            _ = plan.sweep
        with pytest.raises(rm.PlanError, match=r"line 1, column 9: sweep: expected"):
            plan.check()


class TestByteOrderMark:
    """Some editors write a byte-order mark at the start of a file."""

    MARK = "\ufeff"

    def test_a_plan_may_begin_with_it(self, plan_file: Path, tmp_path: Path) -> None:
        text = f"{SMALL}[sweep]\nseeds = 2\n"
        plan_file.write_text(self.MARK + text, encoding="utf-8")
        marked, plain = rm.Plan.load(plan_file), rm.Plan(text, tmp_path, str(plan_file))
        assert marked == plain == rm.Plan(self.MARK + text, tmp_path, str(plan_file))
        assert marked.sweep == {"seeds": 2}
        assert marked.get("seed") == 1
        assert rm.run(marked, quiet=True).status == "finished"

    def test_errors_name_the_same_line_with_it(self, plan_file: Path) -> None:
        for text in (SMALL.replace("seed = 1", "seed = [1]"), "seed = \n"):
            messages = []
            for mark in ("", self.MARK):
                plan_file.write_text(mark + text, encoding="utf-8")
                with pytest.raises(rm.PlanError) as error:
                    rm.Plan.load(plan_file).check()
                messages.append(str(error.value))
            assert messages[0] == messages[1]

    def test_a_manifest_may_begin_with_it(self, small_run: rm.Run, tmp_path: Path) -> None:
        text = (small_run.path / "manifest.json").read_text(encoding="utf-8")
        file = tmp_path / "manifest.json"
        file.write_text(self.MARK + text, encoding="utf-8")
        assert rm.Plan.load(file).check() == rm.Plan(SMALL).check()

    def test_a_figure_may_begin_with_it(self, tmp_path: Path) -> None:
        for file in FIG3.glob("*.toml"):
            text = file.read_text(encoding="utf-8")
            (tmp_path / file.name).write_text(self.MARK + text, encoding="utf-8")
        marked, plain = papers.load_figure(tmp_path), papers.load_figure(FIG3)
        assert (marked.runs, marked.plan.text) == (plain.runs, plain.plan.text)


def test_a_compact_plan_is_the_plan_with_these_values() -> None:
    plan = rm.Plan(SMALL)
    overrides = [("workload.load", 0.7), ("transport", rm.Homa()), ("topology.hosts", 16)]
    same = plan.with_(*overrides)
    assert compact_plan(plan, *overrides).table() == same.table()
    assert compact_plan(plan, *overrides).check() == same.check()


def test_a_file_of_groups_is_an_input_and_follows_a_saved_plan(tmp_path: Path) -> None:
    (tmp_path / "groups.json").write_text("{}")
    plan = rm.Plan('[workload]\nfile = "a.et"\ngroups-file = "groups.json"\n', tmp_path)
    assert [*plan.input_digests()] == ["groups.json"]
    (tmp_path / "below").mkdir()
    plan.save(tmp_path / "below/plan.toml")
    saved = rm.Plan.load(tmp_path / "below/plan.toml")
    assert saved.get("workload.groups-file") == "../groups.json"


WRONG_SWEEPS = (
    "seeds = 0",
    "seed = 3",
    'grid = { "workload.load" = [0.3, -1] }',
    'grid = { "workload.lod" = [0.3, 0.5] }',
    'transports = ["dcpim", "dcpmi"]',
    "seeds = 2\nprecision = 2",
    'seeds = 2\nflows = "many"',
)


@pytest.mark.parametrize("sweep", WRONG_SWEEPS)
def test_a_check_finds_the_mistakes_of_a_sweep_that_the_command_finds(
    plan_file: Path, sweep: str
) -> None:
    plan_file.write_text(f"{SMALL}[sweep]\n{sweep}\n")
    with pytest.raises(rm.PlanError) as caught:
        rm.Plan.load(plan_file).check()
    line = error_line("check", plan_file)
    assert line == f"rampmeter: {caught.value} [{caught.value.code}]"
    assert rm.run(plan_file, quiet=True).is_all_delivered, "a run ignores it"


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e400", "1" + 30 * "0"])
@pytest.mark.parametrize("path", ["topology.hosts", "workload.load", "topology.access-gbps"])
def test_numbers_of_a_manifest_that_are_none_name_their_key_without_a_line(
    small_run: rm.Run, tmp_path: Path, number: str, path: str
) -> None:
    manifest = json.loads((small_run.path / "manifest.json").read_text())
    table, key = path.split(".")
    manifest["plan"][table][key] = "NUMBER"
    file = tmp_path / "manifest.json"
    file.write_text(json.dumps(manifest).replace('"NUMBER"', number))
    with pytest.raises(rm.PlanError) as caught:
        rm.Plan.load(file).check()
    error = caught.value
    assert (error.file, error.key, error.line) == (str(file), path, None), error
    assert str(error).startswith(f"{file}: {path}: expected ")
