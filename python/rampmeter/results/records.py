"""The parts of a run that tables show."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from rampmeter.results.blame_tables import FlowTimes
from rampmeter.results.table_files import read_table

if TYPE_CHECKING:
    import pyarrow as pa


class RunRecord(Protocol):
    """The parts of a run that tables show."""

    @property
    def path(self) -> Path:
        """The folder of the results."""

    @property
    def name(self) -> str:
        """The name of the run."""

    @property
    def summary(self) -> Mapping[str, Any]:
        """Statistics."""

    @property
    def manifest(self) -> Mapping[str, Any]:
        """The plan and the progress."""

    @property
    def status(self) -> str:
        """`finished`, `incomplete`, `timed-out` or `interrupted`."""

    @property
    def host_names(self) -> Sequence[str]:
        """The custom names of hosts."""

    @property
    def blame(self) -> FlowTimes | None:
        """The causes of the times of flows."""

    def columns(self, *names: str) -> "pa.Table":
        """Reads columns of the table of flows."""


def read_optional(run: RunRecord, name: str, *columns: str) -> "pa.Table | None":
    """Reads a file of results, or some of its columns; returns `None` if the run has none."""
    file = run.path / name
    return read_table(file, list(columns) or None) if file.exists() else None
