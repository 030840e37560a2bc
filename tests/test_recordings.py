"""Recordings of other simulators that are not in their form."""

from pathlib import Path

import pytest

import rampmeter as rm
from rampmeter.replays.recording import Recording

HEADER = "arrival_ps,src,dst,size_bytes,fct_ps"


def recording(here: Path, *rows: str, header: str = HEADER) -> Path:
    file = here / "flows.csv"
    file.write_text("\n".join([header, *rows]) + "\n")
    return file


def test_a_recording_with_two_columns_of_a_time_names_both(here: Path) -> None:
    file = recording(here, "0,0,1,100,500,0.5", header=f"{HEADER},fct_us")
    with pytest.raises(rm.PlanError) as caught:
        Recording.load(file, {})
    assert str(caught.value).startswith(f"{file}: expected one column of fct, got fct_")
    assert {"fct_ps", "fct_us"} <= set(str(caught.value.got).split())
    assert Recording.load(file, {"fct_us": "fct_us"}).file == file


@pytest.mark.parametrize("cell", ["NaN", "inf", "-inf", "1e400", "-1", "0", "x"])
def test_cells_that_are_no_time_are_named_with_their_line(here: Path, cell: str) -> None:
    file = recording(here, "0,0,1,100,500", f"0,0,1,100,{cell}")
    with pytest.raises(rm.PlanError) as caught:
        Recording.load(file, {})
    error = caught.value
    assert (error.file, error.line, error.key, error.got) == (str(file), 3, "fct_ps", cell)


def test_a_quotation_mark_that_is_not_closed_is_named_with_its_line(here: Path) -> None:
    file = recording(here, "0,0,1,100,500", '0,0,1,"100,500', "0,0,1,100,500")
    with pytest.raises(rm.PlanError) as caught:
        Recording.load(file, {})
    assert caught.value.line == 3
    assert "a quotation mark that is not closed in its line" in str(caught.value)
