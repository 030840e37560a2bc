"""Directive that plays a plan on a page of the site.

    ```{animation} plans/incast8.toml transports=tcp,dcpim to=60us
    :at: 16.4
    The queue of the port to host 0 under TCP and dcPIM.
    ```

The plan is next to the page or in `examples`. The words after it are options of `rampmeter animate`
(`transports`, `from`, `to`, `hosts`, `title`, `seed`), and keys of the plan with a dot, such as
`workload.load=0.8`. The text below is the caption.

- `:at:` pauses at a time in microseconds. Otherwise the page plays when it is visible.
- `:height:` is that of the frame in pixels; by default it follows from the number of transports.

The runs are made when the site is built, and kept in its folder `animations` by a digest of plan,
options and program. Below the frame are a link to the page and the command that makes it. A plan
that cannot be run is a warning of the build, and the page has only the command.
"""

import hashlib
import math
import os
import shlex
from contextlib import redirect_stdout
from html import escape
from io import StringIO
from pathlib import Path
from typing import Any, ClassVar

import click
from docutils import nodes
from docutils.parsers.rst import directives
from sphinx.application import Sphinx
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective

from rampmeter import _core, animation
from rampmeter.cli import main

EXAMPLES = Path(__file__).parents[2] / "examples"
PROGRAM = sorted(file for file in Path(animation.__path__[0]).iterdir() if file.is_file())
"""Files of the program that make pages; pages change with them."""
FOLDER = "animations"
"""Folder of the pages in the site."""
OPTIONS = ("transports", "from", "to", "hosts", "title", "seed")
HEIGHTS = (640, 860)
"""Pixels of a frame of one row of networks, and of two rows."""
logger = logging.getLogger(__name__)


class Animation(SphinxDirective):
    """The directive `animation`."""

    required_arguments = 1
    final_argument_whitespace = True
    has_content = True
    option_spec: ClassVar[dict[str, Any]] = {
        "at": directives.unchanged_required,
        "height": directives.positive_int,
    }

    def run(self) -> list[nodes.Node]:
        """Returns the frame with its caption; runs the plan if the site has no such page yet."""
        name, *words = shlex.split(self.arguments[0])
        plan = self._plan(name)
        for file in (plan, *PROGRAM):
            self.env.note_dependency(str(file))
        options = self._options(words)
        shown = plan.relative_to(EXAMPLES) if plan.is_relative_to(EXAMPLES) else name
        command = shlex.join(["rampmeter", "animate", str(shown), *options])
        caption = nodes.paragraph("", "", classes=["animation-caption"])
        if self.content:
            text, _ = self.state.inline_text(" ".join(self.content), self.lineno)
            caption += [*text, nodes.Text(" ")]
        file = Path(self.env.app.outdir) / FOLDER / self._file_name(plan, options)
        try:
            if not file.is_file():
                _animate([str(plan), *options], file)
        except (click.ClickException, SystemExit) as error:
            reason = error.format_message() if isinstance(error, click.ClickException) else error
            logger.warning("%s: %s", command, reason, location=self.get_location())
            return [_with(caption, nodes.literal(command, command))]
        up = "../" * self.env.docname.count("/")
        at = f"#t={self.options['at']}" if "at" in self.options else ""
        address = f"{up}{FOLDER}/{file.name}{at}"
        n = next((word.count(",") + 1 for word in words if word.startswith("transports=")), 1)
        height = self.options.get("height", HEIGHTS[min(math.ceil(n / 2), len(HEIGHTS)) - 1])
        frame = (
            f'<iframe class="animation" src="{escape(address)}" loading="lazy" '
            f'title="{escape(f"Animation: {command}")}" '
            f'style="width:100%;height:{height}px;border:0"></iframe>'
        )
        link = nodes.raw("", f'<a href="{escape(address)}">The page alone</a>', format="html")
        parts = [link, nodes.Text(": "), nodes.literal(command, command)]
        return [nodes.raw("", frame, format="html"), _with(caption, *parts)]

    def _plan(self, name: str) -> Path:
        page = Path(self.env.doc2path(self.env.docname)).parent
        places = [page / name, EXAMPLES / name]
        for place in places:
            if place.is_file():
                return place.resolve()
        expected = " or ".join(map(str, places))
        raise self.error(f"animation: expected a plan, {expected}, got no such file")

    def _options(self, words: list[str]) -> list[str]:
        """Returns the options of the command for words such as `to=60us`."""
        found = []
        for word in words:
            key, equals, value = word.partition("=")
            if equals and key in OPTIONS:
                found += [f"--{key}", value]
            elif equals and "." in key:
                found += ["--set", word]
            else:
                expected = f"{', '.join(OPTIONS)} or a key of the plan, each with = and a value"
                raise self.error(f"animation: expected {expected}, got {word}")
        return found

    @staticmethod
    def _file_name(plan: Path, options: list[str]) -> str:
        """Returns the name of a page, which changes with the plan, the options and the program."""
        digest = hashlib.sha256(repr((options, _core.VERSION, _core.COMMIT)).encode())
        for file in (plan, *PROGRAM):
            digest.update(file.read_bytes())
        return f"{plan.stem}-{digest.hexdigest()[:12]}.html"


def _animate(arguments: list[str], file: Path) -> None:
    """Runs the command; raises its errors."""
    argv = ["animate", *arguments, "--quiet", "--out", os.fspath(file)]
    with redirect_stdout(StringIO()):
        main(argv, standalone_mode=False)


def _with(caption: nodes.paragraph, *parts: nodes.Node) -> nodes.paragraph:
    caption += parts
    return caption


def setup(app: Sphinx) -> dict[str, bool]:
    """Adds the directive."""
    app.add_directive("animation", Animation)
    return {"parallel_read_safe": True}
