"""Data of figures and of pages with animations, as readers see them."""

import base64
import gzip
import json
import re
from itertools import accumulate
from typing import Any

import numpy as np
from matplotlib.figure import Figure


def unpack(text: str) -> dict[str, Any]:
    """Returns the data of a page, as its script reads them."""
    found = re.search(r'<script type="text/plain" id="data">([^<]*)</script>', text)
    assert found is not None
    data: dict[str, Any] = json.loads(gzip.decompress(base64.b64decode(found[1])))
    for run in data["runs"]:
        for table in (run["packets"], run["queues"], run["drops"], run["marks"], *run["phases"]):
            for name in {"start", "at", "packet"} & set(table):
                table[name] = list(accumulate(table[name]))
    return data


def lines(figure: Figure) -> dict[str, list[tuple[float, float]]]:
    """Returns the points of each line by its label."""
    return {
        str(line.get_label()): [(float(x), float(y)) for x, y in np.asarray(line.get_xydata())]
        for line in figure.axes[0].get_lines()
    }
