"""Modules that are slow to import and are imported on first use, so that the command starts fast.

Each takes 20 to 90 ms, and `import rampmeter` 300 ms without them. Annotations with their types are
strings, since others would import them.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__all__ = ["asyncio", "fsspec", "pa", "pa_csv", "pc", "perfetto_trace", "pq"]

if TYPE_CHECKING:
    import asyncio

    import fsspec
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.csv as pa_csv
    import pyarrow.parquet as pq
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
    pa = _Module("pyarrow")
    pa_csv = _Module("pyarrow.csv")
    pc = _Module("pyarrow.compute")
    perfetto_trace = _Module("perfetto.protos.perfetto.trace.perfetto_trace_pb2")
    pq = _Module("pyarrow.parquet")
