"""The parts of plans as types: every field is a key of the simulator."""

import inspect
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass
from inspect import signature
from pathlib import Path
from typing import Any

import pandas
import polars
import pyarrow as pa
import pytest

import rampmeter as rm
from rampmeter import plan_tables
from rampmeter.plan.base import PlanTable
from rampmeter.plan.schema import plan_schema
from tools.generate.derivations import derivations
from tools.generate.plan_tables import TABLES, TAGGED

ROOT = Path(__file__).resolve().parent.parent

WHOLE: list[PlanTable] = [
    rm.RackLocal(
        sizes="imc10", local_load=0.1, remote_load=0.2, hosts_per_rack=4, flows=9, until_us=9e5
    ),
    rm.IncastOverlay(
        sizes="imc10", load=0.3, incast_load=0.1, fan_in=3, incast_bytes=999, flows=9, until_us=9e5
    ),
    rm.Outcast(
        fan=3,
        hub=0,
        peers=range(1, 5),
        flow_bytes=1000,
        start_us=1,
        period_us=5,
        rounds=2,
        flows=9,
        until_us=9e5,
    ),
    rm.Shuffle(
        senders=range(4),
        receivers=range(4, 8),
        flow_bytes=1000,
        start_us=1,
        period_us=5,
        rounds=2,
        flows=9,
        until_us=9e5,
    ),
    rm.Dense(flow_bytes=1000, start_us=2, flows=9, until_us=9e5),
    rm.SkewedAllToAll(
        host_bytes=10_000,
        skew=1.0,
        hosts=range(4),
        start_us=1,
        period_us=100,
        rounds=2,
        flows=9,
        until_us=9e5,
    ),
    rm.Mix(
        parts=[rm.imc10(0.1, 9), {"pattern": "dense", "flow-bytes": 100}], flows=9, until_us=9e5
    ),
]


SOME: list[PlanTable] = [
    rm.Stride(
        stride=3, sizes="imc10", hosts=range(0, 8, 2), rounds=2, period_us=5, start_us=1, flows=8
    ),
    rm.Staggered(
        rack_share=0.5,
        pod_share=0.2,
        hosts_per_rack=2,
        hosts_per_pod=4,
        sizes="imc10",
        load=0.1,
        on_us=5,
        off_us=9,
        flows=9,
        until_us=9e5,
    ),
    rm.Bisection(sizes="imc10", hosts=[0, "h3", 5, 7]),
    rm.Rpc(
        requests={"fixed": 100},
        responses="imc10",
        calls=2,
        clients=[0],
        servers=range(1, 4),
        fan=2,
        interval_us=5,
        service_us=2,
        time_distribution="exponential",
        start_us=1,
    ),
    rm.Phases(
        parts=[rm.collective("all-reduce", 4000, group_size=4, group_step=2), rm.imc10(0.1, 9)],
        rounds=2,
        pause_us=3,
    ),
    rm.AllToAll(sizes={"fixed": 1000}, hosts=[0, 3, 5]),
    rm.Permutation(sizes="imc10", load=0.2, hosts=range(1, 8, 3), flows=9),
]
"""Patterns whose keys exclude each other."""


@pytest.mark.parametrize("workload", SOME, ids=lambda part: type(part).__name__)
def test_patterns_run_in_python(workload: PlanTable) -> None:
    run = rm.run(topology=rm.star(8), transport=rm.Homa(), workload=workload, quiet=True)
    assert run.status == "finished"
    assert bool(run.summary["rpcs"]) == isinstance(workload, rm.Rpc)


@pytest.mark.parametrize("workload", WHOLE, ids=lambda part: type(part).__name__)
def test_every_field_of_a_pattern_is_accepted(workload: PlanTable) -> None:
    left_out = {"total_bytes"}
    assert all(
        getattr(workload, f.name) is not None for f in fields(workload) if f.name not in left_out
    )
    topology = rm.star(8)
    plan = rm.Plan.of(topology=topology, transport=rm.DcPim(), workload=workload)
    assert plan.check()["workload"]["pattern"] == workload.table()["pattern"]
    run = rm.run(topology=topology, transport=rm.DcPim(), workload=workload, quiet=True)
    assert run.status == "finished"


def test_faults_clocks_and_loads_are_accepted() -> None:
    link = rm.LinkFault(link="h0-s0", loss=0.1, duplicate=0.1, reorder=0.1, delay_us=1)
    outages = [
        rm.Outage(link="h1-s0", from_us=10, until_us=20),
        rm.Outage(host=3, from_us=10, until_us=20),
        rm.Outage(switch=0, from_us=30, until_us=40),
    ]
    plan = rm.Plan.of(
        topology=rm.star(8),
        transport=rm.DcPim(),
        workload=rm.imc10(0.2, 20),
        faults=rm.Faults(
            loss=1e-3,
            duplicate=1e-3,
            reorder=1e-3,
            delay_us=1,
            links=[link],
            outages=outages,
            rerouting_us=100,
        ),
        clocks=rm.Clocks(offset_us=0.01, drift_ppm=1),
        load=rm.Load(payload_bytes=1460, header_bytes=40),
    )
    checked = plan.check()
    assert len(checked["faults"]["outages"]) == 3
    assert checked["clocks"]["drift-ppm"] == 1


def test_a_topology_of_links_is_the_network() -> None:
    links = [rm.Link(between=(f"h{i}", "s0"), gbps=10, propagation_ns=100) for i in range(2)]
    topology = rm.Links(hosts=2, switches=1, links=links, switch_ns=100, host_ns=100)
    workload = rm.imc10(0.2, 20)
    run = rm.run(topology=topology, transport=rm.DcPim(), workload=workload, quiet=True)
    # A packet over two links of 10 Gbit/s and 100 ns, 100 ns in the switch and in its receiver.
    short = [flow for flow in run.flows.to_pylist() if flow["size_bytes"] <= 1460]
    assert short
    for flow in short:
        assert flow["ideal_ps"] == 2 * (flow["size_bytes"] + 40) * 8 * 100 + 400_000


PART_OF_A_VALUE = {"RangeSpec", "SizeTable"}
"""Tables that are mappings or ranges in Python."""


def test_every_table_of_plans_is_a_class_and_a_keyword_of_run() -> None:
    schema = plan_schema()
    keywords = inspect.signature(rm.run).parameters
    assert schema["properties"].keys() <= keywords.keys()
    tables = {
        name
        for name, definition in schema["definitions"].items()
        if "properties" in definition and not re.match("(kind|pattern|name)-", name)
    }
    of_forms = TAGGED.keys() | {"Transport"}
    assert tables == TABLES.keys() | of_forms | PART_OF_A_VALUE
    reference = (ROOT / "docs" / "reference" / "python.md").read_text(encoding="utf-8")
    documented = re.findall(r"^\.\. autoclass:: rampmeter\.(\w+)$", reference, re.MULTILINE)
    assert {*plan_tables.__all__} <= {*documented}


def test_hosts_of_generated_networks_have_names() -> None:
    hosts = [f"gpu{number}" for number in range(4)]
    parts: dict[str, Any] = {"topology": rm.star(4), "transport": rm.DcPim()}
    workload = rm.Shuffle(senders=["gpu1", "gpu2"], receivers=["gpu3"], flow_bytes=999)
    for names in (rm.Names(hosts=hosts), {"hosts": hosts}):
        run = rm.run(**parts, workload=workload, names=names, quiet=True)
        assert set(run.flows["dst_name"].to_pylist()) == {"gpu3"}


def test_ranges_have_steps_and_do_not_descend() -> None:
    shuffle = rm.Shuffle(senders=range(0, 8, 2), receivers=["h1", 3], flow_bytes=1)
    assert shuffle.table()["senders"] == {"first": 0, "count": 4, "step": 2}
    assert shuffle.table()["receivers"] == ["h1", 3]
    with pytest.raises(ValueError, match="ascending numbers"):
        rm.Shuffle(senders=range(7, 0, -1), receivers=range(4), flow_bytes=1).table()


COLUMNS = {
    "arrival_us": [0.0, 1.5, 2.0],
    "src": [0, 2, 3],
    "dst": [1, 1, 0],
    "size_bytes": [20_000, 500_000, 1_000],
}


@pytest.mark.parametrize("make", [dict, pa.table, pandas.DataFrame, polars.DataFrame])
def test_tables_in_memory_are_flows(make: Callable[[Any], object], tmp_path: Path) -> None:
    file = tmp_path / "flows.parquet"
    for workload in (rm.flows(make(COLUMNS)), rm.flows(make(COLUMNS), file=file)):
        run = rm.run(topology=rm.star(4), transport=rm.DcPim(), workload=workload, quiet=True)
        found = run.flows.sort_by("arrival_ps").to_pydict()
        assert found["size_bytes"] == COLUMNS["size_bytes"]
        assert found["arrival_ps"] == [0, 1_500_000, 2_000_000]
    assert list(tmp_path.iterdir()) == [file]


def test_other_values_than_tables_are_refused() -> None:
    with pytest.raises(TypeError, match=r"^table: expected a table of Arrow, .* got \[1, 2\]"):
        rm.flows([1, 2])


USER = """\
import rampmeter as rm

run = rm.run(
    topology=rm.leaf_spine(),
    transport=rm.DcPim(matching_rounds=4),
    workload=rm.imc10(load=0.6, flows=100),
    faults=rm.Faults(loss=0.1),
)
share: float = run.summary["utilisation"]
rows: int = run.flows.num_rows
"""


TYPOS = [
    ("matching_rounds=4", "round=4", 'Unexpected keyword argument "round"'),
    ("faults=rm", "fault=rm", 'Unexpected keyword argument "fault"'),
    ("load=0.6", 'load="0.6"', "incompatible type"),
    ("rm.imc10", "rm.imc11", "has no attribute"),
    ("flows.num_rows", "flows.n_rows", "has no attribute"),
    ("run.flows", "run.flow", "has no attribute"),
]


def test_mypy_finds_typos_of_users(tmp_path: Path) -> None:
    # One process: two that share a cache at the same time stop with an internal error.
    (tmp_path / "right.py").write_text(USER)
    for index, (right, wrong, _) in enumerate(TYPOS):
        (tmp_path / f"wrong{index}.py").write_text(USER.replace(right, wrong))
    argv = [sys.executable, "-m", "mypy", "--strict", "."]
    done = subprocess.run(argv, capture_output=True, text=True, cwd=tmp_path)
    lines = done.stdout.splitlines()
    assert done.returncode == 1, done.stdout + done.stderr
    assert not [line for line in lines if line.startswith("right.py")]
    for index, (_, _, message) in enumerate(TYPOS):
        found = [line for line in lines if line.startswith(f"wrong{index}.py")]
        assert any(message in line for line in found), (message, done.stdout)


@pytest.mark.parametrize("name", [*plan_tables.__all__, *rm.transports.__all__])
def test_help_has_the_unit_of_each_field(name: str) -> None:
    of = getattr(rm, name)
    parts = re.split(r"^ *- `(\w+)`: ", of.__doc__, flags=re.MULTILINE)
    documented = dict(zip(parts[1::2], parts[2::2], strict=True))
    assert documented.keys() == {field.name for field in fields(of) if field.init}
    for field, text in documented.items():
        has_unit = field.endswith(("_us", "_ns", "_gbps", "_bytes"))
        assert text.strip(), field
        assert "nit: " in " ".join(text.split()) + " " or not has_unit, field


def test_help_has_the_derivations_of_pages() -> None:
    def of(kind: Any) -> str:
        return " ".join(kind.__doc__.split())

    assert "r = k = 4, beta = 1.3 (§4.1)." in of(rm.DcPim)
    assert "Derivation: 1.5 packet times (§3.2); between real hosts" in of(rm.PHost)
    assert "Derivation of `eta`, `max_stage`: 0.95, 5 (§5.1)." in of(rm.Hpcc)
    pages = sorted((ROOT / "docs/protocols").glob("*.md"))
    assert sum(len(derivations(page)) for page in pages) > 50


def test_whole_numbers_may_be_floats() -> None:
    assert rm.imc10(load=1.0, flows=1e2).table() == {  # type: ignore[arg-type]
        **rm.imc10(load=1.0, flows=100).table(),
        "load": 1.0,
    }
    assert rm.imc10(load=0.5, flows=1.5).table()["flows"] == 1.5  # type: ignore[arg-type]


def former_arguments() -> Iterator[tuple[type[PlanTable], str, str]]:
    """Yields classes with a former and the present name of an argument, of all renamed keys."""
    source = (ROOT / "crates/proto/src/keys/renamed.rs").read_text()
    pairs = re.findall(r'renamed(?:_in)?\((?:"[\w-]+", )?"([\w-]+)", "([\w-]+)"', source)
    classes = [one for one in vars(rm).values() if is_table(one)]
    for old, new in ([part.replace("-", "_") for part in pair] for pair in pairs):
        for one in classes:
            names = {field.name for field in fields(one)}
            if new in names and old not in names:
                yield one, old, new


def is_table(value: object) -> bool:
    return isinstance(value, type) and issubclass(value, PlanTable) and is_dataclass(value)


def test_former_names_of_arguments_are_errors_with_the_present_ones() -> None:
    found = [*former_arguments()]
    assert len(found) >= 40
    for one, old, new in found:
        with pytest.raises(rm.PlanError) as caught:
            one(**{old: "x"})
        assert (caught.value.key, caught.value.expected) == (f"{one.__name__}.{old}", new)


@pytest.mark.parametrize(
    ("kind", "former", "present"),
    [
        (rm.DcPim, "handshake", "notification"),
        (rm.Fastpass, "model", "allocation_unit"),
        (rm.PFabric, "window", "window_initial"),
        (rm.Ndp, "switch_ports", "fabric_model"),
        (rm.Capton, "window", "window_granted"),
    ],
)
def test_former_names_of_some_transports_are_errors(
    kind: type[PlanTable], former: str, present: str
) -> None:
    with pytest.raises(rm.PlanError, match=f"expected {present}"):
        kind(**{former: "x"})


def test_former_numbers_are_named_in_the_present_unit() -> None:
    message = r"^PFabric.rto_ns: expected rto_us=45, got the former name rto_ns=45000$"
    with pytest.raises(rm.PlanError, match=message):
        rm.PFabric(rto_ns=45_000)  # type: ignore[call-arg]


def test_classes_have_the_signatures_of_their_fields() -> None:
    assert [*signature(rm.Pfc).parameters] == [field.name for field in fields(rm.Pfc)]
    with pytest.raises(TypeError, match="unexpected keyword argument 'queu'"):
        rm.Tcp(queu=5)  # type: ignore[call-arg]


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"dst": [9, 1, 1]}, "row 1: dst: expected a host below 4, got 9"),
        ({"size_bytes": [1, 2, 0]}, "row 3: size_bytes: expected at least 1, got 0"),
        ({"nosuch": [1, 2, 3]}, "expected columns among .* got nosuch"),
    ],
)
def test_errors_of_tables_in_memory_cite_the_argument(
    columns: dict[str, list[int]], message: str
) -> None:
    plan = rm.Plan.of(
        topology=rm.star(4), transport="dcpim", workload=rm.flows({**COLUMNS, **columns})
    )
    for call in (plan.check, lambda: rm.run(plan, quiet=True)):
        with pytest.raises(rm.PlanError, match=f"^workload: table of rampmeter.flows: {message}"):
            call()


def test_errors_of_tables_in_files_cite_the_file(tmp_path: Path) -> None:
    flows = rm.flows({**COLUMNS, "dst": [9, 1, 1]}, file=tmp_path / "flows.parquet")
    plan = rm.Plan.of(topology=rm.star(4), transport="dcpim", workload=flows)
    with pytest.raises(rm.PlanError, match=r"^workload.file: /.*/flows.parquet:1: dst: "):
        plan.check()
