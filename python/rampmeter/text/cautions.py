"""Warnings of plans and runs as data, and what their codes mean."""

import tomllib
from collections.abc import Iterable, Mapping
from functools import cache
from importlib.resources import files
from itertools import chain, repeat
from typing import Any, Final

EXPLANATIONS: Final = ("explanations.toml", "explanations_of_nodes.toml")
"""Files with a paragraph on each code."""


class Caution(str):
    """A likely mistake in a plan, or a reason to doubt a result: a sentence with a code.

    >>> caution = Caution("topology: round trips differ", "far-hosts")
    >>> caution, caution.code
    ('topology: round trips differ', 'far-hosts')
    """

    __slots__ = ("code",)
    code: str
    """The kind, for programs; empty in results of earlier versions."""

    def __new__(cls, text: str, code: str) -> "Caution":
        """A sentence of a kind."""
        caution = super().__new__(cls, text)
        caution.code = code
        return caution

    def __getnewargs__(self) -> tuple[str, str]:  # type: ignore[override]
        return str(self), self.code


def cautions_of(summary: Mapping[str, Any]) -> list[Caution]:
    """Returns the warnings of a summary."""
    codes: Iterable[str] = summary.get("warning_codes") or ()
    texts = summary.get("warnings") or ()
    return [
        Caution(text, code) for text, code in zip(texts, chain(codes, repeat("")), strict=False)
    ]


@cache
def explanations() -> dict[str, str]:
    """Returns the paragraph on each code of a warning or error, and of a log line of rampd."""
    found: dict[str, str] = {}
    for name in EXPLANATIONS:
        text = files("rampmeter").joinpath(name).read_text(encoding="utf-8")
        found |= tomllib.loads(text)
    return {code: paragraph.strip() for code, paragraph in found.items()}
