"""Tables as CSV, LaTeX and Markdown."""

import csv
import io
from collections.abc import Iterable, Sequence
from typing import Any, Final

from rampmeter.text.numbers import NONE, is_words, markdown

LATEX: Final = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "&": r"\&",
    "%": r"\%",
    "$": r"\$",
    "#": r"\#",
    "_": r"\_",
    "<": "$<$",
    ">": "$>$",
    "|": "$|$",
    "±": r"$\pm$",
    "µ": r"$\mu$",
    "\u00d7": r"$\times$",
    "≤": r"$\leq$",
    "≥": r"$\geq$",
    "†": r"\dag{}",
    "…": r"\dots{}",
    "\u2009": r"\,",
    "\u00a0": " ",
}
"""Characters that LaTeX needs otherwise."""


def csv_text(keys: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Returns a header of keys and a line for each row; missing values are empty."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(keys)
    writer.writerows(rows)
    return text.getvalue()


def markdown_text(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Returns a table in Markdown; numbers are on the right, except in the first column."""
    first, _, *lines = markdown(
        [*map(_markdown_cell, head)], [[*map(_markdown_cell, r)] for r in rows]
    )
    columns = [*zip(*rows, strict=True)][1:] or [()] * (len(head) - 1)
    rule = f"| {' | '.join(['---', *('---' if is_words(one) else '---:' for one in columns)])} |"
    return "\n".join([first, rule, *lines]) + "\n"


def latex_text(
    head: Sequence[str],
    rows: Sequence[Sequence[tuple[str, str]]],
    sections: Iterable[int] = (),
) -> str:
    """Returns a `tabular` of the package booktabs. Cells are values and half their intervals.

    A column with intervals is two: the value on the right of the first, so that decimal points are
    aligned, and the interval on the left of the second.
    """
    has_interval = [any(row[idx][1] for row in rows) for idx in range(len(head))]
    is_text = [idx == 0 or is_words(row[idx][0] for row in rows) for idx in range(len(head))]
    kinds = [
        "r@{}l" if interval else "l" if text else "r"
        for interval, text in zip(has_interval, is_text, strict=True)
    ]
    heads = [
        rf"\multicolumn{{2}}{{c}}{{{_stacked(one, 'c')}}}" if interval else _stacked(one, kind)
        for one, interval, kind in zip(head, has_interval, kinds, strict=True)
    ]
    lines = [rf"\begin{{tabular}}{{{''.join(kinds)}}}", r"\toprule"]
    lines += [_latex_row(heads), r"\midrule"]
    ends = set(sections)
    for idx, row in enumerate(rows):
        cells = [
            _latex_cell(single_line(value), half, has_interval=interval)
            for (value, half), interval in zip(row, has_interval, strict=True)
        ]
        lines.append(_latex_row(cells))
        if idx in ends and idx + 1 < len(rows):
            lines.append(r"\midrule")
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}"]) + "\n"


def escape(text: str) -> str:
    """Returns a text in LaTeX, without control characters, which LaTeX refuses.

    >>> print(escape("50 % of h_0"))
    50 \\% of h\\_0
    """
    return "".join(LATEX.get(one, one if one.isprintable() else "") for one in text)


def single_line(text: str) -> str:
    """Returns a heading without line breaks; a hyphen joins the words around it."""
    return " ".join(text.replace("-\n", "-").replace(".\n", ".").split())


def _stacked(heading: str, side: str) -> str:
    """Returns a heading; its lines are stacked."""
    lines = [_guarded(escape(line)) for line in heading.split("\n")]
    stack = " \\\\ ".join(lines)
    return rf"\shortstack[{side}]{{{stack}}}" if len(lines) > 1 else stack


def _latex_row(cells: Sequence[str]) -> str:
    return rf"{_guarded(' & '.join(cells))} \\"


def _guarded(line: str) -> str:
    """Returns a line that is no argument of the rule or the end of the row before it."""
    return f"{{}}{line}" if line[:1] in ("[", "*") else line


def _latex_cell(value: str, half: str, *, has_interval: bool) -> str:
    cell = _latex_number(value)
    return rf"{cell} & ${{}}\pm{{}}${_latex_number(half)}" if half else cell + " &" * has_interval


def _latex_number(text: str) -> str:
    """Returns a text or a number, with thin spaces between its thousands."""
    if text == NONE:
        return "--"
    if text in ("inf", "-inf"):
        return rf"${text.replace('inf', '')}\infty$"
    if text[:1] == "-" and text[1:2].isdigit():
        # A hyphen is shorter than a minus.
        return f"$-${_latex_number(text[1:])}"
    digits = text.replace(" ", "")
    return text.replace(" ", r"\,") if digits.isdecimal() else escape(text)


def _markdown_cell(text: str) -> str:
    return single_line(text).replace("|", "\\|")
