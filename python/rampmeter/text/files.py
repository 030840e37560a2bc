"""Files that are written: whole or not at all, with errors that begin with the name of the file.

A missing folder is created, as by `--out` with a folder. A file is written next to its place, and
then replaces the former one, so that an interrupted command leaves no half of it. Devices and pipes
are written directly: they must not be replaced by a file.
"""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from errno import ENOTDIR
from pathlib import Path
from secrets import token_hex

from rampmeter._core import PlanError, ResultError
from rampmeter.text.locations import FILE_ACCESS, E, Location, location_of, relocated


def write_text(path: Path, text: str) -> None:
    """Writes a text into a file; raises `ResultError`, an `OSError`, if it cannot."""
    with replacing(path) as partial:
        partial.write_text(text, encoding="utf-8")


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yields the name of a file that replaces `path` at the end, and is removed after an error.

    Its name ends as that of `path`, and its mode is that of the former file. Errors of the
    operating system have the name of `path`.
    """
    with named_errors(path), _missing_folders(path.parent):
        if path.exists() and not path.is_file():
            yield path
            return
        # A symbolic link remains one.
        target = path.resolve()
        partial = target.with_name(f"{target.stem}.{token_hex(4)}.partial{target.suffix}")
        try:
            if target.exists():
                # Others must not read a private file while it is written.
                partial.touch(0o600)
            yield partial
            if target.exists():
                shutil.copymode(target, partial)
            partial.replace(target)
        except BaseException:
            partial.unlink(missing_ok=True)
            raise


def make_folder(folder: Path) -> None:
    """Creates a folder and those above it, if they are missing.

    Raises `ResultError`, an `OSError`, with the name of a file in the place of a folder, or of the
    folder that cannot be created.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError):
        above = next((one for one in (folder, *folder.parents) if one.exists()), folder)
        located = Location(above).result_error(expected="a folder", got="a file")
        located.code, located.errno = FILE_ACCESS, ENOTDIR
        raise located from None
    except OSError as error:
        raise _located(folder, error, f"cannot be created: {error.strerror}") from error


@contextmanager
def replaced_by_simulator(path: Path) -> Iterator[Path]:
    """Yields the name of a file that the simulator writes, and that replaces `path` at the end.

    Its errors have the name of `path`.
    """
    with replacing(path) as partial:
        try:
            yield partial
        except (PlanError, ResultError) as error:
            if error.file == str(partial):
                raise relocated(error, Location(path)) from None
            if str(partial) in str(error):
                raise _renamed(error, str(partial), str(path)) from None
            raise


def _renamed(error: E, partial: str, name: str) -> E:
    """Returns an error with a name instead of that of the partial file."""
    parts = (str(error) if error.problem is None else error.problem, error.expected, error.got)
    renamed = [None if part is None else part.replace(partial, name) for part in parts]
    error.problem, error.expected, error.got = renamed
    return relocated(error, location_of(error))


@contextmanager
def named_errors(path: Path) -> Iterator[None]:
    """Raises errors of the operating system as `ResultError`, with the file and the plain cause."""
    try:
        yield
    except (PlanError, ResultError):
        raise
    except OSError as error:
        if error.errno is None:
            raise
        raise _located(path, error, os.strerror(error.errno)) from error


def _located(path: Path, error: OSError, problem: str) -> ResultError:
    """Returns an error of the operating system with the name of the file, and the plain cause."""
    located = Location(path).result_error(problem)
    located.code, located.errno = FILE_ACCESS, error.errno
    return located


@contextmanager
def _missing_folders(folder: Path) -> Iterator[None]:
    """Creates a folder and those above it, and removes the new ones after an error."""
    missing = [one for one in (folder, *folder.parents) if not one.exists()]
    make_folder(folder)
    try:
        yield
    except BaseException:
        for one in missing:
            with suppress(OSError):
                one.rmdir()
        raise
