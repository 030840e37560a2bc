"""The HTML file of a report."""

import os
import platform
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib import resources
from pathlib import Path
from typing import Any, Final

import jinja2
from markdown_it import MarkdownIt
from markupsafe import Markup

from rampmeter import _core
from rampmeter.report.charts import figure_json, plotly_script
from rampmeter.report.figures import VALUE_COLUMNS
from rampmeter.report.model import (
    Cell,
    Chart,
    DataTable,
    HeatMap,
    Link,
    LinkList,
    MarkdownText,
    Section,
    SectionPart,
    SvgImage,
    Verdicts,
)
from rampmeter.text.numbers import NONE

TEMPLATE, STYLE, SCRIPT = "report.html.j2", "report.css", "report.js"
DIGITS: Final = 4
"""Significant digits of numbers in tables."""
KINDS: Final[dict[type, str]] = {
    Chart: "chart",
    HeatMap: "chart",
    DataTable: "grid",
    MarkdownText: "prose",
    SvgImage: "image",
    LinkList: "links",
}
FEW: Final = 8
"""Maximum number of rows of a table without a search field."""


def html(sections: Sequence[Section], title: str) -> str:
    """Returns the text of a report."""
    values = [row for section in sections for row in section.rows]
    environment = jinja2.Environment(
        autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=jinja2.StrictUndefined
    )
    environment.filters |= {
        "cell": _cell,
        "sort_key": _sort_key,
        "markdown": _markdown,
        "kind": _kind,
        "figure": lambda part: Markup(figure_json(part)),
    }
    template = environment.from_string(_asset(TEMPLATE))
    return template.render(
        title=title,
        few=FEW,
        sections=sections,
        groups=_groups(sections),
        total=_sum(sections),
        values=DataTable("All expected values", VALUE_COLUMNS, values) if values else None,
        style=Markup(_asset(STYLE)),
        script=Markup(_asset(SCRIPT)),
        plotly=Markup(plotly_script()) if _has_charts(sections) else "",
        made=(
            ("made", datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")),
            ("version", f"{_core.VERSION} ({_core.COMMIT})"),
            ("machine", f"{_processor()}, {os.cpu_count()} processors, {platform.system()}"),
        ),
    )


def _asset(name: str) -> str:
    return resources.files("rampmeter.report").joinpath(name).read_text(encoding="utf-8")


def _groups(sections: Sequence[Section]) -> list[tuple[str, list[Section], Verdicts | None]]:
    """Returns sections by their groups, with the verdicts of all of a group's sections."""
    by_name: dict[str, list[Section]] = {}
    for section in sections:
        by_name.setdefault(section.group, []).append(section)
    return [(name, of_name, _sum(of_name)) for name, of_name in by_name.items()]


def _sum(sections: Sequence[Section]) -> Verdicts | None:
    found = [section.verdicts for section in sections if section.verdicts is not None]
    if not found:
        return None
    return Verdicts(
        sum(one.match for one in found),
        sum(one.miss for one in found),
        sum(one.fewer_flows for one in found),
        sum(one.not_judged for one in found),
    )


def _has_charts(sections: Sequence[Section]) -> bool:
    return any(isinstance(part, Chart | HeatMap) for one in sections for part in one.parts)


def _kind(part: SectionPart) -> str:
    """Returns the template's name for the kind of a part."""
    return KINDS[type(part)]


def _cell(value: Cell | Link) -> str | Markup:
    """Returns the text of a cell."""
    if isinstance(value, Link):
        return Markup('<a href="{}">{}</a>').format(value.target, value.text)
    if value is None:
        return NONE
    if isinstance(value, float):
        return f"{value:.{DIGITS}g}"
    return str(value)


def _sort_key(value: Cell | Link) -> str:
    """Returns a column's sort key if it is not the text of the cell."""
    return repr(value) if isinstance(value, float) else ""


def _markdown(text: str) -> Markup:
    """Converts Markdown to HTML; HTML in it is escaped."""
    made: Any = MarkdownIt("commonmark", {"html": False}).enable("table").render(text)
    return Markup(made)


def _processor() -> str:
    """Returns the name of the processor, if the system reports it."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    named = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(named, platform.machine())
