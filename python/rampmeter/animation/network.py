"""Nodes and links of an animation, and their places."""

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any, Final

from rampmeter.plots.layout import (
    LinkLine,
    NodeBox,
    is_circle,
    place_in_circle,
    place_in_rows,
)
from rampmeter.text.locations import Location

HOSTS_MAX: Final = 64
"""Maximum number of hosts of an animation."""


@dataclass(frozen=True)
class Network:
    """The shown part of a network; a link is a direction of a cable, from its sending node."""

    nodes: list[dict[str, Any]]
    """`name` in timelines, `label`, `tier` (0 for hosts and arbiters), and `x` and `y` from 0 to 1,
    downwards."""
    links: dict[str, dict[str, Any]]
    """By name, such as `h0>s0`: the numbers `from` and `to` of its nodes, `lane` among parallel
    links, `gbps`, and the propagation delay `ps`."""
    shape: str
    """`rows` with a row for each tier, or `circle`."""


def network_of(
    drawing: Mapping[str, Any], link_names: Iterable[str], hosts: Sequence[int] | None
) -> Network:
    """Places the nodes of `Plan.drawing`, and the arbiters at the ends of `link_names`.

    With `hosts` only these are shown, with the switches above them. Raises `PlanError` if a host
    does not exist, or if there are too many.
    """
    names = [f"h{idx}" for idx in range(len(drawing["hosts"]))]
    n_hosts = len(names)
    if hosts is not None and (unknown := [host for host in hosts if not 0 <= host < n_hosts]):
        expected = f"hosts from 0 to {n_hosts - 1}"
        raise Location(key="hosts").error(expected=expected, got=unknown[0])
    n_shown = n_hosts if hosts is None else len(set(hosts))
    if n_shown > HOSTS_MAX:
        raise Location(key="hosts").error(
            expected=f"at most {HOSTS_MAX} hosts in an animation",
            got=n_shown,
            hint="choose some, such as 0-15",
        )
    names += [f"s{idx}" for idx in range(len(drawing["switches"]))]
    labels = [*drawing["hosts"], *(switch["name"] for switch in drawing["switches"])]
    tiers = [0] * n_hosts + [switch["tier"] for switch in drawing["switches"]]
    cables = [(*link["ends"], link["gbps"], link["propagation_ns"]) for link in drawing["links"]]
    ends = {end for name in link_names for end in _with_end(name) if end[0].startswith("a")}
    for arbiter, switch in sorted(ends):
        # Networks of plans have no arbiters; their links are like those of the first host.
        at = names.index(switch)
        like = next(cable for cable in cables if 0 in cable[:2])
        names, labels, tiers = [*names, arbiter], [*labels, arbiter], [*tiers, 0]
        cables.append((len(names) - 1, at, *like[2:]))
    chosen = set(range(len(names))) if hosts is None else _with_switches(set(hosts), tiers, cables)
    order = sorted(chosen, key=lambda idx: (tiers[idx] > 0, idx))
    number = {idx: place for place, idx in enumerate(order)}
    shown = [cable for cable in cables if cable[0] in chosen and cable[1] in chosen]
    nodes = [{"name": names[idx], "label": labels[idx], "tier": tiers[idx]} for idx in order]
    boxes = [NodeBox(node["label"], node["tier"]) for node in nodes]
    wires = [LinkLine((number[a], number[b]), gbps, 1) for a, b, gbps, _ in shown]
    shape = _place(boxes, wires)
    for node, box in zip(nodes, boxes, strict=True):
        node |= {"x": round(box.x, 4), "y": round(box.y, 4)}
    return Network(nodes, dict(_directions(shown, names, number)), shape)


def _with_end(name: str) -> list[tuple[str, str]]:
    """Returns each end of a link with the other one."""
    a, b = name.partition(".")[0].split(">")
    return [(a, b), (b, a)]


def _with_switches(
    hosts: AbstractSet[int], tiers: Sequence[int], cables: Sequence[tuple[Any, ...]]
) -> set[int]:
    """Returns hosts with the switches that a path upwards reaches."""
    above = defaultdict[int, set[int]](set)
    for a, b, *_ in cables:
        low, high = sorted((a, b), key=lambda node: tiers[node])
        above[low].add(high)
        if tiers[a] == tiers[b]:
            above[high].add(low)
    found, edge = set(hosts), set(hosts)
    while edge:
        edge = {high for node in edge for high in above[node]} - found
        found |= edge
    return found


def _place(boxes: Sequence[NodeBox], wires: Sequence[LinkLine]) -> str:
    """Sets the places of nodes, from 0 to 1 in both directions, and returns their shape."""
    for wire in wires:
        a, b = wire.ends
        boxes[a].near.append(b)
        boxes[b].near.append(a)
    hosts = [box for box in boxes if box.tier == 0]
    arbiters = [box.label.startswith("a") for box in hosts]
    if len(hosts) == len(boxes) - 1 and len(hosts) > 2:
        shape = "circle"
        boxes[-1].x = boxes[-1].y = 0.0
        n = sum(not is_arbiter for is_arbiter in arbiters)
        for place, box in enumerate(hosts):
            # Arbiters are between the last host and the first.
            is_arbiter = arbiters[place]
            angle = -2 * math.pi * (n - 0.5 if is_arbiter else place) / n
            # The first host is on the right: links to the side are the longest on a screen.
            radius = 0.62 + 0.2 * (place - n) if is_arbiter else 1.0
            box.x, box.y = radius * math.cos(angle), radius * math.sin(angle)
    elif is_circle(boxes, wires):
        shape = "circle"
        place_in_circle(boxes)
    else:
        shape = "rows"
        place_in_rows(boxes, wires)
    for axis in ("x", "y"):
        values = [getattr(box, axis) for box in boxes]
        low, high = min(values), max(values)
        for box in boxes:
            share = (getattr(box, axis) - low) / (high - low) if high > low else 0.5
            setattr(box, axis, 1 - share if axis == "y" else share)
    return shape


def _directions(
    cables: Iterable[tuple[Any, ...]], names: Sequence[str], number: Mapping[int, int]
) -> Iterable[tuple[str, dict[str, Any]]]:
    """Yields the two links of each cable; the second one between two nodes ends with `.2`."""
    lanes = Counter[tuple[int, int]]()
    for a, b, gbps, propagation_ns in cables:
        lane = lanes[a, b] + lanes[b, a]
        lanes[a, b] += 1
        for source, target in ((a, b), (b, a)):
            end = f".{lane + 1}" if lane else ""
            link = {"from": number[source], "to": number[target], "lane": lane, "gbps": gbps}
            link["ps"] = round(propagation_ns * 1000)
            yield f"{names[source]}>{names[target]}{end}", link
