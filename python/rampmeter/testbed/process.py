"""Processes: those in a namespace, their termination, and the makers of fabrics."""

import os
import signal
import threading
import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import Final

from rampmeter.testbed.command import TestbedError

NAMESPACES: Final = Path("/var/run/netns")
"""Folder of the names of `ip netns`."""

TERM_SECONDS: Final = 2.0
"""Maximum time for a process to end by itself, in seconds."""

KILL_SECONDS: Final = 5.0
"""Maximum time for the kernel to end a killed process, in seconds."""

POLL_SECONDS: Final = 0.01
"""Interval between checks of processes for their end, in seconds."""


def start_ticks(pid: int) -> int | None:
    """Returns the time at which a process started, in clock ticks since boot; `None` without one.

    With its number this identifies a process, since numbers are reused.
    """
    try:
        text = Path(f"/proc/{pid}/stat").read_text("utf-8", errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return None
    state, *rest = text.rpartition(")")[2].split()
    return None if state in "ZX" else int(rest[18])


def end_all(names: Collection[str]) -> None:
    """Ends the processes of network namespaces: terminates them, and kills remaining ones."""
    for number, seconds in ((signal.SIGTERM, TERM_SECONDS), (signal.SIGKILL, KILL_SECONDS)):
        deadline = time.monotonic() + seconds
        asked: set[int] = set()
        while left := processes_in(names):
            if time.monotonic() > deadline:
                break
            # Processes that were started meanwhile receive the signal too.
            for pid in left - asked:
                with suppress(ProcessLookupError):
                    os.kill(pid, number)
            asked |= left
            time.sleep(POLL_SECONDS)
        else:
            return
    raise TestbedError(f"testbed: killed processes still run: {sorted(left)}")


def processes_in(names: Collection[str]) -> set[int]:
    """Returns the processes of network namespaces, without this one."""
    inodes = {inode for name in names if (inode := _inode(NAMESPACES / name)) is not None}
    pids = {int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdecimal()}
    pids.discard(os.getpid())
    return {pid for pid in pids if _inode(Path(f"/proc/{pid}/ns/net")) in inodes}


@contextmanager
def held_signals() -> Iterator[None]:
    """Defers SIGINT and SIGTERM to the end of the block, so that it is not interrupted."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    held: list[int] = []

    def hold(number: int, _frame: FrameType | None) -> None:
        held.append(number)

    numbers = (signal.SIGINT, signal.SIGTERM)
    previous = {number: signal.signal(number, hold) for number in numbers}
    try:
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, signal.SIG_DFL if handler is None else handler)
        for late in dict.fromkeys(held):
            signal.raise_signal(late)


@contextmanager
def sigterm_raises() -> Iterator[None]:
    """Makes SIGTERM raise `SystemExit` in the block instead of ending the process at once."""
    is_main = threading.current_thread() is threading.main_thread()
    if not is_main or signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
        yield
        return

    def leave(number: int, _frame: FrameType | None) -> None:
        raise SystemExit(128 + number)

    signal.signal(signal.SIGTERM, leave)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _inode(path: Path) -> int | None:
    try:
        return path.stat().st_ino
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        return None
