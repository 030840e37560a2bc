"""Locks of result folders, so that two runs never write to one."""

import errno
import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from rampmeter.text.files import make_folder, named_errors
from rampmeter.text.locations import Location

LOCKS: Final = Path("/proc/locks")
"""All locks of this host, on Linux."""


def _holder_of(folder: int) -> str:
    """Returns a name for the run that has locked a folder: its process, if that is of this host."""
    stat = os.fstat(folder)
    place = f"{os.major(stat.st_dev):02x}:{os.minor(stat.st_dev):02x}:{stat.st_ino}"
    with suppress(OSError):
        for line in LOCKS.read_text(encoding="ascii").splitlines():
            # Number, kind, advisory, mode, process, device and file.
            fields = line.split()
            if place in fields and fields[4] != "-1":
                return f"another run (process {fields[4]})"
    return "another run"


@contextmanager
def lock_folder(out: Path) -> Iterator[None]:
    """Locks a folder against other runs, of this process or others; creates it if necessary.

    Raises `ResultError` if another run has the lock. A file system without locks has no protection.
    """
    make_folder(out)
    with named_errors(out):
        folder = os.open(out, os.O_RDONLY | os.O_DIRECTORY)
    try:
        try:
            fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise Location(out).result_error(
                f"{_holder_of(folder)} is writing to this folder", hint="use another one with --out"
            ) from None
        except OSError as error:
            if error.errno not in (errno.ENOLCK, errno.ENOTSUP):
                raise
        yield
    finally:
        os.close(folder)
