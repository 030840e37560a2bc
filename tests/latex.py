r"""A grammar of the LaTeX that tables may have, so that tests need no TeX.

    file    = { comment | tabular | empty line }
    tabular = \begin{tabular}{columns} \toprule row \midrule { row | \midrule } \bottomrule
              \end{tabular}
    row     = cell { & cell } \\       as many as columns; a cell of \multicolumn counts as several
    cell    = { character | escape | command | math | \shortstack }

Each rule and row is on a line of its own. A line after one that ends with `\\` or a rule must not
begin with `[` or `*`, which would be an argument.
"""

import re
from dataclasses import dataclass
from itertools import pairwise

TOKEN = re.compile(
    r"(?P<escape>\\[&%$#_{}])"
    r"|(?P<space>\\,)"
    r"|(?P<symbol>\\(?:textbackslash|textasciitilde|textasciicircum|dag|dots)\{\})"
    r"|(?P<math>\$(?:[<>|-]|-?\\infty|\{\}\\pm\{\}|\\(?:pm|mu|times|leq|geq))\$)"
    r"|(?P<protected>\{\})"
    r"|(?P<character>[^\\{}$&#^_~%])"
)
STACK = re.compile(r"\\shortstack\[[lcr]\]\{")
WIDE = re.compile(r"\\multicolumn\{([1-9])\}\{[lcr]\}\{")
BEGIN = re.compile(r"\\begin\{tabular\}\{((?:r@\{\}l|[lcr])+)\}")
RULES = (r"\toprule", r"\midrule", r"\bottomrule")


class LatexError(ValueError):
    """A place that the grammar does not allow."""


@dataclass
class Tabular:
    """A table: the number of its columns, and the texts of cells in its rows."""

    n_columns: int
    rows: list[list[str]]


def parse(text: str) -> list[Tabular]:
    """Returns the tables of a file; raises `LatexError` at the first line that is not LaTeX."""
    if not text.endswith("\n"):
        raise LatexError("expected a line break at the end")
    tables = []
    lines = iter(text.split("\n")[:-1])
    for line in lines:
        if line.startswith("%") or not line:
            continue
        begin = BEGIN.fullmatch(line)
        if begin is None:
            raise LatexError(f"expected a comment or a tabular: {line}")
        columns = len(re.findall("[lcr]", begin[1].replace("@{}", "")))
        body = []
        for inner in lines:
            if inner == r"\end{tabular}":
                break
            body.append(inner)
        else:
            raise LatexError(r"expected \end{tabular}")
        tables.append(Tabular(columns, _rows(body, columns)))
    return tables


def _rows(lines: list[str], columns: int) -> list[list[str]]:
    """Returns the cells of rows between rules."""
    rules = [line for line in lines if line in RULES]
    is_booktabs = [lines[0], lines[2], lines[-1]] == [*RULES]
    if not is_booktabs or rules.count(RULES[0]) + rules.count(RULES[2]) != 2:
        raise LatexError(f"expected the rules of booktabs around head and body: {lines}")
    for one, other in pairwise(lines):
        if one in RULES and other in RULES and (one, other) != (RULES[1], RULES[2]):
            raise LatexError(f"expected rows between {one} and {other}")
    rows = []
    for line in lines:
        if line in RULES:
            continue
        if line[:1] in ("[", "*"):
            raise LatexError(f"the line begins with an argument of the one before it: {line}")
        if not line.endswith(r" \\"):
            raise LatexError(f"expected the end of a row: {line}")
        cells, n = _cells(line.removesuffix(r" \\"))
        if n != columns:
            raise LatexError(f"expected {columns} columns, got {n}: {line}")
        rows.append(cells)
    return rows


def _cells(line: str) -> tuple[list[str], int]:
    """Returns the cells of a row, and the number of its columns."""
    cells, n, at = [], 0, 0
    while True:
        wide = WIDE.match(line, at)
        start = wide.end() if wide else at
        end = _cell(line, start)
        cells.append(line[start:end].strip())
        n += int(wide[1]) if wide else 1
        if wide:
            if line[end : end + 1] != "}":
                raise LatexError(f"expected the end of \\multicolumn at {end}: {line}")
            end += 1
        rest = line[end:].lstrip(" ")
        if not rest:
            return cells, n
        if rest[0] != "&":
            raise LatexError(f"not allowed at {end}: {line}")
        at = len(line) - len(rest) + 1
        at += len(line) - at - len(line[at:].lstrip(" "))


def _cell(line: str, at: int, *, is_stacked: bool = False) -> int:
    """Returns the end of a cell, or of the lines in a stack."""
    while at < len(line):
        if is_stacked and line.startswith(r"\\ ", at):
            at += 3
            if line[at : at + 1] in ("[", "*"):
                raise LatexError(f"a stacked line begins with an argument: {line}")
            continue
        stack = STACK.match(line, at)
        if stack is not None and not is_stacked:
            at = _cell(line, stack.end(), is_stacked=True)
            if line[at : at + 1] != "}":
                raise LatexError(f"expected the end of the stack at {at}: {line}")
            at += 1
            continue
        token = TOKEN.match(line, at)
        if token is None:
            break
        character = token["character"]
        if character and not (character.isprintable() and ord(character) < 0x250):
            raise LatexError(f"a character that LaTeX may lack, {character!r}: {line}")
        at = token.end()
    return at
