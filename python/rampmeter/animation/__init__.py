"""Animations: one self-contained HTML page that plays the packets of one run or of several.

    rampmeter animate plan.toml --transports tcp,dcpim --out page.html

`network` places the nodes, `events` turns the timeline of a run into columns of integers, and
`page` packs both into a page. The scripts of the page are `data.js` (columns, and the state of a
run at a time), `draw.js` (networks), `chart.js` (charts) and `player.js` (clock and controls).
"""

from rampmeter.animation.events import EVENTS_MAX, RunEvents, events_of
from rampmeter.animation.network import HOSTS_MAX, Network, network_of
from rampmeter.animation.page import Animation, page_of

__all__ = [
    "EVENTS_MAX",
    "HOSTS_MAX",
    "Animation",
    "Network",
    "RunEvents",
    "events_of",
    "network_of",
    "page_of",
]
