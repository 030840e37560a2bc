"""The folder of a sweep's results: a dataset of Parquet files, here or at an fsspec URL.

    sweep.json                        the sweep's identity; a folder of another sweep is refused
    runs/point-00000/seed-1.parquet   a row a run, all files of one schema
    flows/point-00000/seed-1.parquet  a row for each flow, if they are stored
    pilots/N/point-00000/seed-1.parquet  a row a run of N flows that chose a length
    summary.parquet                   a row a point: means and intervals over its seeds
    log/*.json                        time, place and duration of the runs

Files are written atomically, and only by the driver. The bytes of all but `log` follow from the
sweep alone.
"""

import contextlib
import io
import json
import posixpath
import re
import uuid
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

from rampmeter._core import ResultError
from rampmeter.on_demand import fsspec, pa, pq
from rampmeter.text.files import make_folder
from rampmeter.text.json_object import object_of
from rampmeter.text.locations import FILE_ACCESS, Location

IDENTITY: Final = "sweep.json"
RUNS: Final = "runs"
FLOWS: Final = "flows"
PILOTS: Final = "pilots"
INTERVALS: Final = "summary.parquet"
LOG: Final = "log"
OURS: Final = (IDENTITY, RUNS, FLOWS, PILOTS, INTERVALS, LOG)
"""All entries of a sweep's folder, except plots."""

_NAME = re.compile(r"point-(\d+)/seed-(\d+)\.parquet")
_PART = re.compile(r"\.(.+)\.[0-9a-f]{32}")
"""A file that is being written, and its name to be."""

_WHOLE_PUTS: Final = frozenset({"s3", "s3a", "gs", "gcs", "abfs", "abfss", "az", "memory"})
"""Protocols whose objects are written atomically."""


class Dataset:
    """A folder of results. Raises `ResultError` if it cannot be read or written."""

    def __init__(self, url: str) -> None:
        self.url = url
        try:
            self._files, self._root = fsspec.core.url_to_fs(url)
        except (ImportError, ValueError, OSError) as error:
            problem = f"cannot be opened as a folder or an fsspec URL: {error}"
            raise Location(url).result_error(problem) from None
        self.is_local = isinstance(self._files, fsspec.implementations.local.LocalFileSystem)
        """True if it is a folder of this machine."""

    def identity(self) -> dict[str, Any] | None:
        """Returns the identity of the sweep in the folder; `None` for an empty folder."""
        data = self._read(IDENTITY)
        if data is None:
            return None
        return object_of(data, Location(self.path(IDENTITY)), ("keys",))

    def put_identity(self, identity: dict[str, Any]) -> None:
        """Writes the identity of the sweep in the folder."""
        self._write(IDENTITY, (json.dumps(identity, indent=1) + "\n").encode())

    def put_log(self, name: str, log: dict[str, Any]) -> None:
        """Writes a log of times and places of the sweep's runs."""
        self._write(f"{LOG}/{name}.json", (json.dumps(log, indent=1) + "\n").encode())

    def put(self, kind: str, point: int, seed: int, table: "pa.Table") -> None:
        """Writes the rows of a run, in `runs` or `flows`."""
        self._write(f"{kind}/{_file(point, seed)}", encode_parquet(table))

    def copy(self, source: str, kind: str, point: int, seed: int) -> None:
        """Copies the rows of a run from one folder of runs to another."""
        data = self._read(f"{source}/{_file(point, seed)}")
        if data is not None:
            self._write(f"{kind}/{_file(point, seed)}", data)

    def put_intervals(self, table: "pa.Table") -> None:
        """Writes means and intervals."""
        self._write(INTERVALS, encode_parquet(table))

    def done(self, kind: str = RUNS) -> set[tuple[int, int]]:
        """Returns the points and seeds that have results."""
        return set(self._stored_keys(kind))

    def table(self, kind: str = RUNS, keys: Iterable[tuple[int, int]] | None = None) -> "pa.Table":
        """Returns the rows of all runs, or of those of `keys`, by point and seed.

        Raises `ResultError` if there are none.
        """
        selected = sorted(self.done(kind) if keys is None else keys)
        tables = []
        for point, seed in selected:
            data = self._read(f"{kind}/{_file(point, seed)}")
            if data is not None:
                where = Location(self.path(f"{kind}/{_file(point, seed)}"))
                tables.append(_decoded(data, where))
        if not tables:
            expected = "flows of a sweep (--flows)" if kind == FLOWS else "results of a sweep"
            raise Location(self.url).result_error(expected=expected)
        try:
            return pa.concat_tables(tables)
        except pa.ArrowException:
            expected = "tables with the same columns"
            raise Location(self.path(kind)).result_error(expected=expected, got="others") from None

    def is_foreign(self) -> bool:
        """Returns true if the folder is not empty and has no sweep."""
        return self.identity() is None and bool(self._names(""))

    def clear(self) -> None:
        """Removes the files of a sweep, its identity first, except plots."""
        for name in OURS:
            path = self.path(name)
            if self._files.exists(path):
                self._files.rm(path, recursive=True)

    def remove_parts(self) -> None:
        """Removes what killed drivers have left of files of runs that are stored by now."""
        for kind in (RUNS, FLOWS):
            for path in self._paths(kind):
                folder, file = posixpath.split(path)
                match = _PART.fullmatch(file)
                if match is not None and self._files.exists(f"{folder}/{match[1]}"):
                    with contextlib.suppress(FileNotFoundError):
                        self._files.rm_file(path)

    def _stored_keys(self, kind: str) -> Iterator[tuple[int, int]]:
        prefix = self.path(kind)
        for path in self._paths(kind):
            match = _NAME.fullmatch(posixpath.relpath(path, prefix))
            if match is not None:
                yield int(match[1]), int(match[2])

    def _paths(self, kind: str) -> list[str]:
        try:
            return [str(path) for path in self._files.find(self.path(kind))]
        except FileNotFoundError:
            return []

    def _names(self, name: str) -> list[str]:
        try:
            return [str(path) for path in self._files.ls(self.path(name), detail=False)]
        except (FileNotFoundError, NotADirectoryError):
            return []

    def _read(self, name: str) -> bytes | None:
        try:
            data: bytes = self._files.cat_file(self.path(name))
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            raise _located(self.path(name), error) from None
        return data

    def _write(self, name: str, data: bytes) -> None:
        """Writes a file atomically."""
        path = self.path(name)
        protocols = self._files.protocol
        names = {protocols} if isinstance(protocols, str) else set(protocols)
        folder, file = posixpath.split(path)
        if self.is_local:
            make_folder(Path(folder))
        with _named_errors(path):
            self._files.makedirs(folder, exist_ok=True)
            if names & _WHOLE_PUTS:
                self._files.pipe_file(path, data)
                return
            # Readers of folders skip names that begin with a dot.
            part = f"{folder}/.{file}.{uuid.uuid4().hex}"
            try:
                self._files.pipe_file(part, data)
                self._files.mv(part, path)
            except FileNotFoundError:
                # A second driver of this sweep has written these bytes and removed the part.
                if not self._files.exists(path):
                    raise
            except BaseException:
                with contextlib.suppress(OSError):
                    self._files.rm_file(part)
                raise

    def path(self, name: str) -> str:
        """Returns the path of a file in the folder."""
        return f"{self._root}/{name}" if name else str(self._root)


@contextlib.contextmanager
def _named_errors(path: str) -> Iterator[None]:
    """Raises errors of a file system with the name of the file, and the plain cause."""
    try:
        yield
    except OSError as error:
        raise _located(path, error) from None


def _located(path: str, error: OSError) -> ResultError:
    located = Location(path).result_error(str(error.strerror or error))
    if error.errno is not None:
        located.code, located.errno = FILE_ACCESS, error.errno
    return located


def encode_parquet(table: "pa.Table") -> bytes:
    """Returns a table as a Parquet file. Equal tables are equal bytes."""
    sink = io.BytesIO()
    pq.write_table(table, sink, compression="zstd", store_schema=True)
    return sink.getvalue()


def decode_parquet(data: bytes) -> "pa.Table":
    """Returns the table of a Parquet file."""
    return pq.read_table(io.BytesIO(data))


def _decoded(data: bytes, where: Location) -> "pa.Table":
    """Returns the table of a file; raises `ResultError` if it is none."""
    try:
        return decode_parquet(data)
    except (pa.ArrowException, OSError, ValueError) as error:
        got = "a part of one, or another kind of file" if data else "an empty file"
        raise where.result_error(expected="a Parquet table", got=got) from error


def _file(point: int, seed: int) -> str:
    return f"point-{point:05}/seed-{seed}.parquet"
