"""Libraries that are slow to import and are imported on first use, so that the command starts fast.

Each takes 20 to 180 ms of processor time, and a command without them 100 ms. Annotations with their
types are strings, since others would import them.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__all__ = [
    "asyncio",
    "fsspec",
    "np",
    "pa",
    "pa_csv",
    "pc",
    "perfetto_trace",
    "pq",
    "protobuf",
    "rich_box",
    "rich_console",
    "rich_measure",
    "rich_table",
    "tomlkit",
]

if TYPE_CHECKING:
    import asyncio

    import fsspec
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.csv as pa_csv
    import pyarrow.parquet as pq
    import rich.box as rich_box
    import rich.console as rich_console
    import rich.measure as rich_measure
    import rich.table as rich_table
    import tomlkit
    from google.protobuf import message as protobuf  # type: ignore[import-untyped]
    from perfetto.protos.perfetto.trace import (  # type: ignore[import-untyped]
        perfetto_trace_pb2 as perfetto_trace,
    )
else:

    class _Module:
        """A module that is imported when one of its names is read."""

        def __init__(self, name: str) -> None:
            self._name = name

        def __getattr__(self, name: str) -> Any:
            return getattr(import_module(self._name), name)

    asyncio = _Module("asyncio")
    fsspec = _Module("fsspec")
    np = _Module("numpy")
    pa = _Module("pyarrow")
    pa_csv = _Module("pyarrow.csv")
    pc = _Module("pyarrow.compute")
    perfetto_trace = _Module("perfetto.protos.perfetto.trace.perfetto_trace_pb2")
    pq = _Module("pyarrow.parquet")
    protobuf = _Module("google.protobuf.message")
    rich_box = _Module("rich.box")
    rich_console = _Module("rich.console")
    rich_measure = _Module("rich.measure")
    rich_table = _Module("rich.table")
    tomlkit = _Module("tomlkit")
