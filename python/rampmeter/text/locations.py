"""Locations of mistakes in files, options and arguments, and errors that name them.

An error is made of its parts: the location, and the expected and the actual value or a problem. Its
message is derived from them, so that programs read attributes, and people the same as a line.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeVar

from rampmeter._core import PlanError, ResultError

SYNTAX: Final = "plan-syntax"
"""Code of a text that is not in the form of its file, and of unknown and missing keys."""
VALUE: Final = "plan-value"
"""Code of impossible values of keys, options and arguments."""
BAD_FILE: Final = "plan-file"
"""Code of files that cannot be read, or that have changed."""
RESULTS: Final = "bad-results"
"""Code of results that cannot be read or written, or that are others."""
FILE_ACCESS: Final = "file-access"
"""Code of errors of the operating system."""
NOTHING: Final = "none"
"""The actual value if there is none."""
EMPTY: Final = "an empty text"
"""The actual value if it is one."""
GOT_MAX: Final = 1000
"""Characters of an actual value that messages have in full."""
GOT_SHOWN: Final = 80
"""Characters of a longer one."""

E = TypeVar("E", bound=PlanError | ResultError)


@dataclass(frozen=True)
class Location:
    """The location of a mistake: a file, and a key, option, argument or column."""

    file: str | Path = ""
    """The file, or another name of the text; empty for options and arguments."""
    key: str = ""
    """The path to the key, such as `workload.load`; empty for the file as a whole."""
    line: int | None = None
    column: int | None = None
    source: str = ""
    """The text of the line, if messages show it."""

    def at(self, name: object) -> "Location":
        """Returns the location of a key in this table, or of a value of this option.

        >>> str(Location("a.toml", "sweep").at("seeds")), str(Location(key="--vary").at("seed"))
        ('a.toml: sweep.seeds', '--vary seed')
        """
        is_option = self.key.startswith("--") and " " not in self.key
        joint = " " if is_option else "." if self.key else ""
        return Location(self.file, f"{self.key}{joint}{name}")

    def item(self, idx: int) -> "Location":
        """Returns the location of an item of this list."""
        return Location(self.file, f"{self.key}[{idx}]")

    def __str__(self) -> str:
        column = "" if self.column is None else f", column {self.column}"
        line = "" if self.line is None else f"line {self.line}{column}"
        return ": ".join(part for part in (str(self.file), line, self.key) if part)

    def error(
        self,
        problem: str = "",
        *,
        expected: str | None = None,
        got: object = NOTHING,
        hint: str = "",
        code: str = VALUE,
    ) -> PlanError:
        """Returns an error of this location: an expected and an actual value, or another problem.

        >>> error = Location("a.toml", "seed").error(expected="a whole number", got="x")
        >>> str(error), error.key, error.got
        ('a.toml: seed: expected a whole number, got x', 'seed', 'x')
        """
        return self._error(PlanError, code, problem, expected, got, hint)

    def result_error(
        self,
        problem: str = "",
        *,
        expected: str | None = None,
        got: object = NOTHING,
        hint: str = "",
    ) -> ResultError:
        """Returns an error of results at this location; its parts are those of `error`."""
        return self._error(ResultError, RESULTS, problem, expected, got, hint)

    def _error(
        self, kind: type[E], code: str, problem: str, expected: str | None, got: object, hint: str
    ) -> E:
        assert bool(problem) != (expected is not None)
        found = None if expected is None else str(got) or EMPTY
        if expected is not None:
            problem = f"expected {expected}, got {found}"
        if hint:
            problem = f"{problem}; {hint}"
        return self._with_parts(kind, code, problem, expected, found)

    def _with_parts(
        self, kind: type[E], code: str | None, problem: str, expected: str | None, got: str | None
    ) -> E:
        if got is not None and len(got) > GOT_MAX:
            shown = f"{got[:GOT_SHOWN]}... ({len(got)} characters)"
            problem, got = problem.replace(got, shown), shown
        quoted = self.source if len(self.source) <= GOT_MAX else f"{self.source[:GOT_SHOWN]}..."
        location, source = str(self), f" (at: {quoted})" if quoted else ""
        error = kind(f"{location}: {problem}{source}" if location else f"{problem}{source}")
        error.code, error.file, error.key = code, str(self.file) or None, self.key
        error.problem, error.expected, error.got = problem, expected, got
        error.line, error.column, error._source = self.line, self.column, self.source or None
        return error


def relocated(error: E, location: Location) -> E:
    """Returns an error with another location. The other parts are the same."""
    problem = str(error) if error.problem is None else error.problem
    moved = location._with_parts(type(error), error.code, problem, error.expected, error.got)
    moved.data_file, moved.data_line = error.data_file, error.data_line
    if isinstance(error, ResultError) and isinstance(moved, ResultError):
        moved.errno = error.errno
    return moved


def location_of(error: PlanError | ResultError) -> Location:
    """Returns the location of an error."""
    source = error._source or ""
    return Location(error.file or "", error.key or "", error.line, error.column, source)


def unreadable(file: str | Path, error: OSError) -> PlanError:
    """Returns the error of a file that cannot be read."""
    return Location(file).error(str(error.strerror or error), code=BAD_FILE)


def undecodable(file: str | Path, error: UnicodeDecodeError) -> PlanError:
    """Returns the error of a file that is no text."""
    return Location(file).error(expected="UTF-8 text", got=error.reason, code=SYNTAX)
