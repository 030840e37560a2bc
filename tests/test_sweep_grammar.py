"""Grammar of sweeps: values, ranges, points, transports, tables."""

import math
import random
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rampmeter as rm
from rampmeter.choices.axes import (
    Uniform,
    listed_axis,
    product,
    random_axis,
    settings_of,
    zipped_axis,
)
from rampmeter.choices.grammar import (
    flatten,
    format_value,
    parse_axis,
    parse_point,
    parse_values,
)
from rampmeter.choices.naming import TransportChoice, transports, transports_of
from rampmeter.sweeps.api import axes_of
from rampmeter.sweeps.session import Shard
from rampmeter.sweeps.spec import Sweep
from rampmeter.sweeps.table import SweepOverrides, sweep_of
from rampmeter.text.lists import split
from rampmeter.text.locations import Location
from rampmeter.text.toml import TomlValue, literal

from .conftest import SMALL

LOAD, HOSTS, SPRAY = "workload.load", "topology.hosts", "fabric.spray"

texts = st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"]), max_size=12)
scalars = st.one_of(
    st.booleans(), st.integers(-(2**62), 2**62), st.floats(allow_nan=False, width=64), texts
)


def refusal(read: Callable[[str, Location], object], text: str) -> str:
    """Returns the error for a text; the place alone if it is accepted."""
    try:
        read(text, Location(key="here"))
    except rm.PlanError as error:
        return str(error)
    return "here"


class TestValues:
    @given(st.lists(scalars, min_size=1, max_size=6))
    def test_formatted_values_are_parsed_unchanged(self, values: list[Any]) -> None:
        read = parse_values(",".join(map(format_value, values)), Location())
        assert isinstance(read, list)
        assert [(type(value), value) for value in read] == [(type(v), v) for v in values]

    @given(st.integers(-999, 999), st.integers(1, 400), st.integers(0, 60), st.integers(0, 4))
    def test_ranges_are_exact_decimals_and_have_both_ends(
        self, first: int, step: int, count: int, places: int
    ) -> None:
        unit = Decimal(1).scaleb(-places)
        numbers = [(first + step * i) * unit for i in range(count + 1)]
        text = f"{numbers[0]:f}..{numbers[-1]:f}:{step * unit:f}"
        read = parse_values(text, Location())
        assert isinstance(read, list)
        assert [repr(value) for value in read] == [
            repr(int(value) if places == 0 else float(value)) for value in numbers
        ]
        # A last number that no step meets does not count.
        beyond = f"{numbers[0]:f}..{numbers[-1] + unit * step / 2:f}:{step * unit:f}"
        assert parse_values(beyond, Location()) == [float(value) for value in numbers]

    @pytest.mark.parametrize(
        ("text", "values"),
        [
            ("0.3..0.8:0.1", [0.3, 0.4, 0.5, 0.6, 0.7, 0.8]),
            ("1..4", [1, 2, 3, 4]),
            ("4..1:-1", [4, 3, 2, 1]),
            ("1..64*2", [1, 2, 4, 8, 16, 32, 64]),
            ("1_000..3_000:1_000", [1000, 2000, 3000]),
            ("1e-3..1e-1*10", [0.001, 0.01, 0.1]),
            ("2, 4, 8..10", [2, 4, 8, 9, 10]),
            ("true,false", [True, False]),
            ("imc10,web-search", ["imc10", "web-search"]),
            ("imc10,{ fixed = 1460 }", ["imc10", {"fixed": 1460}]),
            ('"0.3..0.8:0.1"', ["0.3..0.8:0.1"]),
            ("2024-01-01", ["2024-01-01"]),
            ("uniform(0.3, 0.8)", Uniform(0.3, 0.8)),
            ("log-uniform(1,1000)", Uniform(1, 1000, is_log=True)),
        ],
    )
    def test_lists_ranges_and_distributions(self, text: str, values: object) -> None:
        assert parse_values(text, Location()) == values

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("load", "--vary: expected key=values, got load"),
            ("=1", "expected key=values"),
            ("a b=1", "expected key=values"),
            ("a.b=", "a.b: expected values between commas, got ''"),
            ("a.b=1,,2", "expected values between commas"),
            ("a.b=0.1..0.3", r"expected a step as in 0\.1\.\.0\.3:0\.1"),
            ("a.b=0.1..nan:0.1", r"expected a range such as 0\.3\.\.0\.9:0\.1, got 0\.1\.\.nan"),
            ("a.b=1..3:-1", "expected a step from 1 towards 3, got -1"),
            ("a.b=1..3:0", "expected a step from 1 towards 3, got 0"),
            ("a.b=0..3*2", "expected 0 < first <= last and a factor above 1"),
            ("a.b=1..3*1", "a factor above 1"),
            ("a.b=0..1:1e-9", "expected at most 100000 values"),
            ("a.b=uniform(3,1)", "expected two ascending numbers, got 3 and 1"),
            ("a.b=log-uniform(0,1)", "expected two ascending numbers above 0, got 0 and 1"),
            ("a.b=[1,2", "expected brackets and quotes in pairs"),
            ("a.b=1]", "expected brackets and quotes in pairs"),
        ],
    )
    def test_errors_name_the_place_and_the_fault(self, text: str, message: str) -> None:
        with pytest.raises(rm.PlanError, match=message):
            parse_axis(text, Location(key="--vary"))

    @given(texts)
    def test_any_text_is_read_or_refused(self, text: str) -> None:
        for read in (parse_values, parse_point, transports, split):
            assert refusal(read, text).startswith("here")

    def test_points_are_settings(self) -> None:
        point = parse_point(
            'workload.load=0.3, workload.sizes={ fixed = 3 },name="a,b"', Location()
        )
        assert point == {LOAD: 0.3, "workload.sizes": {"fixed": 3}, "name": "a,b"}
        for text in ("a", "a=1,a=2", "a=1,b"):
            with pytest.raises(rm.PlanError, match="keys that differ"):
                parse_point(text, Location())

    def test_tables_of_keys_are_paths(self) -> None:
        table: dict[str, TomlValue] = {
            "workload": {"load": [1], "sizes": ["a"]},
            "topology.hosts": [2],
            "seed": 1,
        }
        assert flatten(table) == {LOAD: [1], "workload.sizes": ["a"], HOSTS: [2], "seed": 1}


class TestAxes:
    def points(self, *axes: Any) -> list[dict[str, TomlValue]]:
        return [dict(settings_of(choices)) for choices in product(axes, Location())]

    def test_grids_zips_and_lists_are_combined(self) -> None:
        grid = axes_of({LOAD: [0.3, 0.5]}, "grid")
        pairs = zipped_axis({HOSTS: [4, 8], SPRAY: ["random", "ecmp"]}, Location())
        found = self.points(*grid, pairs)
        assert found == [
            {LOAD: load, HOSTS: hosts, SPRAY: spray}
            for load in (0.3, 0.5)
            for hosts, spray in ((4, "random"), (8, "ecmp"))
        ]
        some = axes_of({LOAD: "0.3,0.5"}, "zip", points=[{HOSTS: 4}, {HOSTS: 8}])
        assert len(self.points(*some)) == 4

    @given(seed=st.integers(0, 2**32), number=st.integers(1, 40), is_log=st.booleans())
    def test_samples_are_within_their_ends_and_grow_at_the_end(
        self, seed: int, number: int, *, is_log: bool
    ) -> None:
        columns: dict[str, Any] = {
            LOAD: Uniform(0.3, 0.8, is_log),
            HOSTS: Uniform(2, 64, is_log),
            SPRAY: ["random", "ecmp"],
        }
        points = self.points(random_axis(columns, number, seed, Location()))
        assert len(points) <= number
        for point in points:
            load, hosts = point[LOAD], point[HOSTS]
            assert isinstance(load, float)
            assert 0.3 <= load <= 0.8
            assert isinstance(hosts, int)
            assert 2 <= hosts <= 64
            assert point[SPRAY] in ("random", "ecmp")
        assert (
            self.points(random_axis(columns, number + 3, seed, Location()))[: len(points)] == points
        )

    def test_uniform_numbers_have_the_means_of_their_distributions(self) -> None:
        source = random.Random(3)
        n = 4000
        for of, mean, deviation in [
            (Uniform(1.0, 3.0), 2.0, 2 / math.sqrt(12)),
            (Uniform(0, 9), 4.5, math.sqrt(99 / 12)),
            (Uniform(1.0, math.e**2, is_log=True), (math.e**2 - 1) / 2, 1.7),
        ]:
            drawn = [of.draw(source) for _ in range(n)]
            assert abs(np.mean(drawn) - mean) < 4 * deviation / math.sqrt(n)

    @pytest.mark.parametrize(
        ("make", "message"),
        [
            (
                lambda: zipped_axis({LOAD: [1, 2], HOSTS: [1]}, Location(key="z")),
                "z: expected as many values",
            ),
            (
                lambda: listed_axis([{LOAD: 1}, {HOSTS: 1}], Location(key="p")),
                "expected points of the keys",
            ),
            (
                lambda: listed_axis([{LOAD: 1}, {LOAD: 1}], Location(key="p")),
                "expected values that differ",
            ),
            (lambda: axes_of({LOAD: [1, 1]}, "grid"), "expected values that differ, got 1 twice"),
            (lambda: axes_of({LOAD: []}, "grid"), "expected a list or a text"),
            (lambda: axes_of({LOAD: "uniform(0,1)"}, "grid"), "only available in `sample`"),
            (lambda: axes_of({LOAD: [1]}, "random"), "samples: required with `combine="),
            (lambda: axes_of({}, "random", samples=3), "expected keys to draw"),
            (lambda: axes_of({LOAD: [1]}, "mesh"), "combine: expected grid, zip or random"),
            (lambda: Shard.parse("3"), "expected i/n such as 3/16, got 3"),
            (lambda: Shard.parse("0/4"), "expected 1/4 to 4/4"),
        ],
    )
    def test_errors_name_the_expected_value(self, make: Any, message: str) -> None:
        with pytest.raises(rm.PlanError, match=message):
            make()

    def test_a_key_is_on_one_axis(self) -> None:
        axes = axes_of({LOAD: [1]}, "grid", points=[{LOAD: 2}])
        with pytest.raises(rm.PlanError, match=r"expected workload\.load on one axis, got two"):
            self.points(*axes)


class TestTransports:
    def test_settings_after_a_comma_are_those_of_the_transport_before(self) -> None:
        pfabric = "pfabric:window-initial=60,window-max=60"
        text = f"dcpim,phost:reference,{pfabric},dcpim:paper,beta=1.5,ideal"
        choices = transports(text)
        assert [(c.name, c.preset, dict(c.settings)) for c in choices] == [
            ("dcpim", None, {}),
            ("phost", "reference", {}),
            ("pfabric", None, {"window-initial": 60, "window-max": 60}),
            ("dcpim", "paper", {"beta": 1.5}),
            ("ideal", None, {}),
        ]
        assert ",".join(choice.label for choice in choices) == text

    names = st.from_regex(r"[a-z][a-z0-9-]{0,8}", fullmatch=True)

    @given(
        st.lists(
            st.builds(
                TransportChoice,
                names,
                st.none() | names,
                st.dictionaries(names.filter(lambda key: key != "label"), scalars, max_size=3),
            ),
            min_size=1,
            max_size=4,
            unique_by=lambda choice: choice.text,
        )
    )
    def test_formatted_values_are_parsed_unchanged(self, choices: list[TransportChoice]) -> None:
        text = ",".join(choice.text for choice in choices)
        if text.strip() == "all":
            return
        assert transports(text) == choices

    def test_tables_and_classes_are_equivalent(self) -> None:
        table: dict[str, TomlValue] = {
            "name": "pfabric",
            "window-initial": 60,
            "fabric": {"buffer-bytes": 9000},
            "label": "w60",
        }
        one, two = transports_of([table, rm.DcPim(r=3, preset="reference")])
        text = "pfabric:window-initial=60,fabric.buffer-bytes=9000"
        assert (one.label, one.text) == ("w60", text)
        assert two.label == "dcpim:reference,matching-rounds=3"
        plan = one.of(rm.Plan(SMALL))
        assert plan.get("transport") == {"name": "pfabric", "window-initial": 60}
        assert plan.get("fabric.buffer-bytes") == 9000
        assert len(transports("all")) >= 6

    def test_keys_of_the_plan_apply_to_the_same_transport(self) -> None:
        plan = rm.Plan(SMALL).with_(("transport.matching-rounds", 2))
        assert TransportChoice("dcpim", "paper").of(plan).get("transport.matching-rounds") == 2
        assert TransportChoice("phost").of(plan).get("transport") == {"name": "phost"}

    @pytest.mark.parametrize(
        "text", ["", "dcpim,", "dcpim,dcpim", "window=60,dcpim", "dcpim:", "a b", "a:x=1,x=2"]
    )
    def test_bad_lists_are_refused(self, text: str) -> None:
        with pytest.raises(rm.PlanError, match="expected"):
            transports(text)


class TestTable:
    def sweep(self, table: str, wishes: SweepOverrides | None = None) -> Sweep:
        return sweep_of(rm.Plan(SMALL + table), wishes)

    def test_the_table_and_the_command_line_are_equivalent(self) -> None:
        sweep = self.sweep("""
            [sweep]
            transports = ["dcpim", "pfabric:window-initial=60", { name = "phost", label = "other" }]
            seeds = 2
            precision = 0.05
            seeds-max = 9
            grid = { "workload.load" = "0.3..0.5:0.1" }
            points = [{ workload.flows = 10, fabric.spray = "ecmp" }]
            [sweep.zip]
            topology.hosts = [4, 8]
            "topology.access-gbps" = [10, 25]
            [sweep.sample]
            number = 2
            [sweep.sample.axes]
            run.drain-us = { uniform = [100, 200] }
        """)
        keys = (LOAD, HOSTS, "topology.access-gbps", "workload.flows", SPRAY, "run.drain-us")
        assert sweep.keys == keys
        assert len(sweep.points) == 3 * 2 * 1 * 2 * 3
        assert [point.transport.label for point in sweep.points[:3]] == [
            "dcpim", "pfabric:window-initial=60", "other",
        ]  # fmt: skip
        last = sweep.points[-1].plan
        assert [last.get(key) for key in keys[:4]] == [0.5, 8, 25, 10]
        assert sweep.replication.seeds == (1, 2)
        assert (sweep.replication.precision, sweep.replication.seeds_max) == (0.05, 9)
        sweep.check()

    def test_arguments_of_the_caller_override_the_table(self) -> None:
        table = '[sweep]\nseeds = 3\ngrid = { "workload.load" = [0.3] }\n'
        assert self.sweep(table).replication.seeds == (1, 2, 3)
        other = self.sweep(table, SweepOverrides(axes_of({HOSTS: [4, 6]}, "grid"), "phost", [7, 9]))
        assert other.keys == (HOSTS,)
        assert [point.name for point in other.points] == [
            "phost topology.hosts=4", "phost topology.hosts=6",
        ]  # fmt: skip
        assert other.replication.seeds == (7, 9)

    def test_seeds_are_counted_from_the_plan_s_and_beyond_the_last(self) -> None:
        plan = rm.Plan(SMALL).with_(("seed", 40), ("sweep.seeds", 2))
        replication = sweep_of(plan).replication
        assert replication.first(4) == (40, 41, 42, 43)
        assert sweep_of(plan, SweepOverrides(seeds=[3, 9])).replication.first(3) == (3, 9, 10)
        assert len(sweep_of(plan, SweepOverrides(precision=0.1, seeds=None)).replication.seeds) == 2

    @pytest.mark.parametrize(
        ("table", "message"),
        [
            ("", "plan: sweep: requires keys to vary, transports or several seeds"),
            ("[sweep]\nseed = 3", r"sweep\.seed: unknown key"),
            ("[sweep]\nseeds = 0", "seeds: expected a number from 1 to 1000000, got 0"),
            ("[sweep]\nseeds = 9000000000", "seeds: expected a number from 1 to 1000000"),
            ("[sweep]\nseeds = [-3]", "seeds: expected seeds from 0 to"),
            ("[sweep]\nseeds = [1, 1]", "seeds: expected seeds that differ"),
            ("[sweep]\nseeds = true", "seeds: expected a number or a list of seeds, got True"),
            ("[sweep]\nseeds = 3\nprecision = 2.0", "precision: expected between 0 and 1"),
            ("[sweep]\npoints = [3]", "points: expected tables, got 3"),
            ('[sweep]\ngrid = { "seed" = [1] }', "seed: cannot be varied; use `seeds`"),
            ('[sweep]\ngrid = { "a b" = [1] }', "expected a key such as workload.load"),
            ('[sweep]\ngrid = { "run.capture" = ["a"] }', "run.capture: not available in a sweep"),
            ("[sweep.sample]\nnumber = 0\naxes.a.b = [1]", "number: expected 1 to 100000, got 0"),
            ("[sweep.sample]\nnumber = 1\naxes.a.b = { normal = [1, 2] }", "expected uniform or"),
            (
                "[sweep]\ntransports = [3]",
                "transports: expected names, .* got 3",
            ),
            ('[sweep]\ntransports = [{ preset = "a" }]', "expected a text for name"),
        ],
    )
    def test_errors_name_the_place_and_the_fault(self, table: str, message: str) -> None:
        with pytest.raises(rm.PlanError, match=message):
            self.sweep(table)

    def test_a_point_that_cannot_run_is_named(self) -> None:
        sweep = self.sweep('[sweep]\ntransports="phost"\ngrid = { "workload.load" = [0.3, -1.0] }')
        with pytest.raises(
            rm.PlanError, match=r"^plan: workload\.load: .* \(at: phost workload\.load=-1\.0\)"
        ):
            sweep.check()

    def test_values_of_numpy_are_numbers(self) -> None:
        (axis,) = axes_of({LOAD: np.linspace(0.25, 0.75, 3)}, "grid")  # type: ignore[dict-item]
        assert [literal(choice.id) for choice in axis.choices] == ["0.25", "0.5", "0.75"]
        (axis,) = axes_of({HOSTS: [np.int64(4)]}, "grid")  # type: ignore[list-item]
        assert [type(choice.id) for choice in axis.choices] == [int]

    def test_files_are_relative_to_the_plan(self, tmp_path: Path) -> None:
        (tmp_path / "plan.toml").write_text(SMALL + "[sweep]\nseeds = 2\n")
        sweep = sweep_of(rm.Plan.load(tmp_path / "plan.toml"))
        assert sweep.points[0].plan.base == tmp_path
