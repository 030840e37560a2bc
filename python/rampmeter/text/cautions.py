"""Warnings of plans and runs as data, and what their codes mean."""

import tomllib
import warnings
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from importlib.resources import files
from itertools import chain, repeat
from typing import Any, Final

EXPLANATIONS: Final = ("explanations.toml", "explanations_of_nodes.toml")
"""Files with a paragraph on each code."""
VALUES: Final = "values"
"""Table of the names of values by code."""
TOO_SHORT: Final = frozenset({"few-flows", "short-run", "short-warm-up"})
"""Codes of the warnings of runs with too few flows for a steady state."""

ONE_SAMPLE: Final = "one-sample"
"""Code of the warning of runs without intervals."""


class Caution(str):
    """A likely mistake in a plan, or a reason to doubt a result: a sentence with its parts.

    >>> caution = Caution("topology: round trips differ", "unequal-round-trips", {"factor": 4.0})
    >>> caution, caution.code, caution.values["factor"]
    ('topology: round trips differ', 'unequal-round-trips', 4.0)
    """

    __slots__ = ("code", "sentence", "values")
    code: str
    """The kind, for programs; empty in results of earlier versions."""
    sentence: str
    """The sentence without the transport before it."""
    values: Mapping[str, Any]
    """The numbers and names in the sentence; empty in results of earlier versions."""

    def __new__(
        cls,
        text: str,
        code: str,
        values: Mapping[str, Any] | None = None,
        sentence: str | None = None,
    ) -> "Caution":
        """A sentence of a kind."""
        caution = super().__new__(cls, text)
        caution.code = code
        caution.values = dict(values or {})
        caution.sentence = text if sentence is None else sentence
        return caution

    def __getnewargs__(  # type: ignore[override]
        self,
    ) -> tuple[str, str, Mapping[str, Any], str]:
        return str(self), self.code, self.values, self.sentence

    def to_json(self) -> dict[str, Any]:
        """Returns the warning as an object."""
        return {"code": self.code, "values": self.values, "text": str(self)}

    def of_transport(self, label: str) -> "Caution":
        """Returns the warning of one of several transports, with its name before the sentence."""
        values = {**self.values, "transport": label}
        return Caution(f"{label}: {self}", self.code, values, str(self))


class CautionWarning(UserWarning):
    """A warning of a call from Python, with its parts."""

    def __init__(self, caution: Caution) -> None:
        """A warning with the sentence of `caution`."""
        super().__init__(str(caution))
        self.caution = caution


def warn_of(caution: Caution) -> None:
    """Warns the caller from Python, by the module `warnings`."""
    warnings.warn(CautionWarning(caution), stacklevel=4)


@contextmanager
def collecting() -> Iterator[list[Caution]]:
    """Yields a list to which the warnings of calls in the block are added."""
    found: list[Caution] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", CautionWarning)
        yield found
    for one in caught:
        if isinstance(one.message, CautionWarning):
            found.append(one.message.caution)
        else:
            warnings.warn_explicit(one.message, one.category, one.filename, one.lineno)


def cautions_of(summary: Mapping[str, Any]) -> list[Caution]:
    """Returns the warnings of a summary."""
    codes: Iterable[str] = summary.get("warning_codes") or ()
    values: Iterable[Mapping[str, Any]] = summary.get("warning_values") or ()
    texts = summary.get("warnings") or ()
    parts = zip(texts, chain(codes, repeat("")), chain(values, repeat({})), strict=False)
    return [Caution(text, code, named) for text, code, named in parts]


def is_one_sample(summary: Mapping[str, Any]) -> bool:
    """Returns true for a run without intervals: its flows come in bursts or wait for others."""
    return any(caution.code == ONE_SAMPLE for caution in cautions_of(summary))


@cache
def _tables() -> dict[str, Any]:
    """Returns the files of explanations as one table."""
    found: dict[str, Any] = {}
    for name in EXPLANATIONS:
        text = files("rampmeter").joinpath(name).read_text(encoding="utf-8")
        found |= tomllib.loads(text)
    return found


@cache
def explanations() -> dict[str, str]:
    """Returns the paragraph on each code of a warning or error, and of a log line of rampd."""
    return {code: text.strip() for code, text in _tables().items() if code != VALUES}


def values_of(code: str) -> list[str]:
    """Returns the names of the values that warnings with a code have; empty for other codes."""
    names: list[str] = _tables()[VALUES].get(code, [])
    return names
