"""The page of an animation: its data, packed, in a template with style and scripts."""

import base64
import gzip
import html
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from os import PathLike
from pathlib import Path
from string import Template
from typing import Any, Final

from rampmeter import _core
from rampmeter.animation.events import RunEvents, differences
from rampmeter.animation.network import Network
from rampmeter.plots.colours import COLOURS, PALETTE
from rampmeter.text.arguments import path_argument
from rampmeter.text.files import write_text
from rampmeter.timeline import KINDS

SCRIPTS: Final = ("data.js", "draw.js", "chart.js", "player.js")
SORTED: Final = ("start", "at", "packet")
"""Columns that are stored as differences."""
CLASS_COLOURS: Final = (PALETTE[0], PALETTE[3], PALETTE[2], PALETTE[4], "#7F7F7F")
"""Colours of the kinds of packets."""


@dataclass(frozen=True)
class Animation:
    """An animation as the text of a page; notebooks show it."""

    html: str
    n_events: int
    """The number of packets on links, changes of queues, drops and marks."""

    def save(self, path: str | PathLike[str]) -> Path:
        """Writes the page into a file, and returns its path."""
        file = path_argument("path", path)
        write_text(file, self.html)
        return file

    def __repr__(self) -> str:
        return f"<animation of {self.n_events} events, {len(self.html) / 1e6:.1f} MB>"

    def _repr_html_(self) -> str:
        style = "width:100%;height:640px;border:0"
        return f'<iframe srcdoc="{html.escape(self.html)}" style="{style}"></iframe>'


def page_of(
    title: str, network: Network, runs: Sequence[RunEvents], window: tuple[float, float]
) -> Animation:
    """Returns the animation of runs on one network, in a window of picoseconds."""
    data = {
        "title": title,
        "window": [int(window[0]), int(window[1])],
        "shape": network.shape,
        "nodes": network.nodes,
        "hosts": network.hosts,
        "links": [{"name": name, **link} for name, link in network.links.items()],
        "colours": COLOURS,
        "classes": [[name, CLASS_COLOURS[idx]] for idx, name in enumerate(KINDS)],
        "runs": [_run(run) for run in runs],
    }
    text = Template(_asset("page.html")).substitute(
        title=html.escape(title),
        version=html.escape(f"Rampmeter {_core.VERSION}"),
        style=_asset("page.css"),
        script="\n".join(_asset(name) for name in SCRIPTS),
        data=_packed(data),
    )
    return Animation(text, sum(run.n_events for run in runs))


def _run(run: RunEvents) -> dict[str, Any]:
    tables = ("packets", "queues", "drops", "marks")
    return {
        "label": run.label,
        "colour": run.colour,
        "kinds": run.kinds,
        "phases": [_columns(phases) for phases in run.phases],
        "flows": run.flows,
        "blame": run.blame,
        **{name: _columns(getattr(run, name)) for name in tables},
    }


def _columns(columns: Mapping[str, Any]) -> dict[str, Any]:
    """Returns columns with those that are sorted as differences."""
    return {
        name: differences(values) if name in SORTED else values for name, values in columns.items()
    }


def _packed(data: Mapping[str, Any]) -> str:
    """Returns JSON, compressed; equal data have equal texts."""
    text = json.dumps(data, separators=(",", ":"), allow_nan=False)
    return base64.b64encode(gzip.compress(text.encode(), mtime=0)).decode("ascii")


def _asset(name: str) -> str:
    return resources.files("rampmeter.animation").joinpath(name).read_text(encoding="utf-8")
