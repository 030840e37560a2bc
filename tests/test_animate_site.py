"""Animations in pages of the site."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from .conftest import ROOT, SMALL
from .drawings import unpack

SITE = """\
# A page

```{animation} one.toml to=20us workload.load=0.7
:at: 3.5
:height: 400
A *caption*.
```

```{animation} plans/incast8.toml transports=ideal
```

```{animation} plans/incast8.toml speed=2
```

```{animation} none.toml
```
"""


@pytest.mark.timeout(120)
def test_pages_of_the_site_embed_animations(tmp_path: Path) -> None:
    source = tmp_path / "docs"
    (source / "deep").mkdir(parents=True)
    extension = str(ROOT / "docs" / "_ext")
    lines = (
        "import sys",
        f"sys.path.insert(0, {extension!r})",
        'extensions = ["myst_parser", "animations"]',
    )
    (source / "conf.py").write_text("\n".join(lines))
    (source / "index.md").write_text("# Site\n\n```{toctree}\ndeep/page\n```\n")
    (source / "deep" / "page.md").write_text(SITE)
    (source / "deep" / "one.toml").write_text(SMALL)
    argv = [sys.executable, "-m", "sphinx", "-q", "-b", "html", str(source), str(tmp_path / "site")]
    done = subprocess.run(argv, capture_output=True, text=True, check=True)
    assert "page.md:9: WARNING: rampmeter animate plans/incast8.toml --transports" in done.stderr
    assert "expected transports with packets" in done.stderr
    assert "expected transports, from, to, hosts, title, seed or a key of the plan" in done.stderr
    assert "expected a plan, " in done.stderr
    text = (tmp_path / "site" / "deep" / "page.html").read_text(encoding="utf-8")
    (frame,) = re.findall(r"<iframe[^>]*>", text)
    found = re.search(r'src="\.\./(animations/one-\w+\.html)#t=3\.5"', frame)
    assert found is not None
    shown = unpack((tmp_path / "site" / found[1]).read_text(encoding="utf-8"))
    assert shown["window"] == [0, 20_000_000]
    assert "height:400px" in frame
    assert "A <em>caption</em>." in text
    words = re.sub(r"<[^>]*>", "", text)
    assert "rampmeter animate one.toml --to 20us --set workload.load=0.7" in words
    assert "rampmeter animate plans/incast8.toml --transports ideal" in words
