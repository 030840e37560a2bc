"""Traces as dataframes write them."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import rampmeter as rm

pd: Any = pytest.importorskip("pandas")

ARRIVALS_US = [0.5, 1.25, 3.0]


def frame(**types: Any) -> Any:
    columns = {"src": [0, 1, 2], "dst": [1, 2, 3], "size_bytes": [100, 2000, 30000]}
    whole = {name: np.array(values, types.get(name, "int64")) for name, values in columns.items()}
    return pd.DataFrame({"arrival_us": ARRIVALS_US, **whole})


def plan(trace: Path) -> rm.Plan:
    workload = rm.Trace(file=trace)
    return rm.Plan.of(topology=rm.star(4), transport=rm.Ideal(), workload=workload)


def flows(trace: Path) -> list[tuple[int, int, int, int]]:
    """Returns arrival, source, destination and size of the flows of a trace's run."""
    table = rm.run(plan(trace), quiet=True).flows.sort_by("flow")
    columns = [table[name].to_pylist() for name in ("arrival_ps", "src", "dst", "size_bytes")]
    return list(zip(*columns, strict=True))


EXPECTED = [(500_000, 0, 1, 100), (1_250_000, 1, 2, 2000), (3_000_000, 2, 3, 30000)]


@pytest.mark.parametrize("compression", [None, "snappy", "gzip", "brotli", "lz4", "zstd"])
def test_tables_of_pandas_are_read_in_every_compression(tmp_path: Path, compression: Any) -> None:
    file = tmp_path / "t.parquet"
    frame().to_parquet(file, compression=compression)
    assert flows(file) == EXPECTED


@pytest.mark.parametrize(
    "kind", ["int16", "int32", "uint16", "uint32", "int64", "uint64", "float32", "float64"]
)
def test_columns_may_be_of_any_type_of_number(tmp_path: Path, kind: str) -> None:
    file = tmp_path / "t.parquet"
    frame(src=kind, dst=kind, size_bytes=kind).to_parquet(file)
    assert flows(file) == EXPECTED


def test_csv_and_arrow_tables_are_equal(tmp_path: Path) -> None:
    frame().to_csv(tmp_path / "t.csv", index=False)
    pq.write_table(pa.Table.from_pandas(frame()), tmp_path / "t.parquet")
    assert flows(tmp_path / "t.csv") == flows(tmp_path / "t.parquet") == EXPECTED


def test_other_columns_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "t.parquet"
    frame().assign(colour="red").to_parquet(file)
    with pytest.raises(rm.PlanError, match="colour"):
        plan(file).check()


def test_columns_of_results_are_not_used_and_named(tmp_path: Path) -> None:
    file = tmp_path / "t.parquet"
    frame().assign(status="delivered").to_parquet(file)
    [warning] = plan(file).warnings
    assert warning == f"{file}: columns are not used: status"
    assert rm.run(plan(file), quiet=True).summary["warnings"][0] == warning


@pytest.mark.parametrize("name", ["t.csv", "t.parquet"])
def test_a_trace_without_flows_is_an_error(tmp_path: Path, name: str) -> None:
    empty = frame().iloc[:0]
    if name.endswith("csv"):
        empty.to_csv(tmp_path / name, index=False)
    else:
        empty.to_parquet(tmp_path / name)
    with pytest.raises(rm.PlanError, match="expected at least one flow, got none"):
        plan(tmp_path / name).check()


def test_errors_of_host_numbers_name_their_row(tmp_path: Path) -> None:
    file = tmp_path / "t.parquet"
    frame(src="float64").assign(src=[0.0, 1.5, np.nan]).to_parquet(file)
    with pytest.raises(rm.PlanError, match=r"t\.parquet:2: src: expected a whole number, got 1\.5"):
        plan(file).check()


def test_distributions_may_have_commas(tmp_path: Path) -> None:
    (tmp_path / "sizes.csv").write_text("1000,0.5\n3000,1\n")
    sizes = {"cdf": tmp_path / "sizes.csv"}
    plan = rm.Plan.of(
        topology=rm.star(4), transport=rm.Ideal(), workload=rm.all_to_all(sizes, 0.5, 10)
    )
    assert plan.check()["workload"]["sizes"]["cdf"] == str(tmp_path / "sizes.csv")


def test_a_column_that_no_trace_has_is_an_error(tmp_path: Path) -> None:
    file = tmp_path / "t.parquet"
    frame().assign(colour="red").to_parquet(file)
    with pytest.raises(rm.PlanError, match=r"expected columns among arrival_us, .* got colour"):
        plan(file).check()


@pytest.mark.parametrize("name", ["t.csv", "t.parquet"])
def test_dataframes_have_dependencies_of_flows(tmp_path: Path, name: str) -> None:
    table = pd.DataFrame(
        {
            "arrival_us": [1.5, None, None],
            "src": [0, 1, 1],
            "dst": [1, 2, 0],
            "size_bytes": [1460, 2920, 1460],
            "after": ["", "0", "0 1"],
            "compute_us": [0.0, 2.0, 0.5],
            "tenant": [0, 0, 1],
        }
    )
    if name.endswith("csv"):
        table.to_csv(tmp_path / name, index=False)
    else:
        table.to_parquet(tmp_path / name)
    run = rm.run(plan(tmp_path / name), quiet=True)
    flows = run.flows.sort_by("flow").to_pydict()
    first, second, third = flows["arrival_ps"]
    assert first == 1_500_000
    # Host 1 has received the first, and is notified of the second by its acknowledgement.
    assert second == first + flows["fct_ps"][0] + 2_000_000
    assert third == second + flows["acked_ps"][1] + 500_000
    assert flows["tenant"] == [0, 0, 1]
