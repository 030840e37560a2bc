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
    """`name` in timelines, `kind` (`host`, `arbiter` or `switch`), `host` (the number of a host),
    `tier` (0 for hosts and arbiters), and `x` and `y` from 0 to 1, downwards."""
    links: dict[str, dict[str, Any]]
    """By name in timelines, such as `h0>s0`: the numbers `from` and `to` of its nodes, `lane` among
    parallel links, `gbps`, and the propagation delay `ps`."""
    shape: str
    """`rows` with a row for each tier, or `circle`."""
    hosts: list[str]
    """The names of all hosts, also of those that are not shown."""


def network_of(
    drawing: Mapping[str, Any], ports: Iterable[tuple[str, str]], hosts: Sequence[int] | None
) -> Network:
    """Places the nodes of `Plan.drawing`, and the arbiters at the ends of links.

    `ports` has the sending node and the name of each link of a timeline. With `hosts` only these
    are shown, with the switches above them. Raises `PlanError` if a host does not exist, or if
    there are too many.
    """
    names = list(drawing["hosts"])
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
    names += [switch["name"] for switch in drawing["switches"]]
    tiers = [0] * n_hosts + [switch["tier"] for switch in drawing["switches"]]
    kinds = ["host"] * n_hosts + ["switch"] * len(drawing["switches"])
    cables = [(*link["ends"], link["gbps"], link["propagation_ns"]) for link in drawing["links"]]
    for arbiter, switch in _arbiters(ports, names):
        # Networks of plans have no arbiters; their links are like those of the first host.
        at = names.index(switch)
        like = next(cable for cable in cables if 0 in cable[:2])
        names, kinds, tiers = [*names, arbiter], [*kinds, "arbiter"], [*tiers, 0]
        cables.append((len(names) - 1, at, *like[2:]))
    chosen = set(range(len(names))) if hosts is None else _with_switches(set(hosts), tiers, cables)
    order = sorted(chosen, key=lambda idx: (tiers[idx] > 0, idx))
    number = {idx: place for place, idx in enumerate(order)}
    shown = [cable for cable in cables if cable[0] in chosen and cable[1] in chosen]
    nodes = [{"name": names[idx], "kind": kinds[idx], "tier": tiers[idx]} for idx in order]
    for idx, node in zip(order, nodes, strict=True):
        if idx < n_hosts:
            node["host"] = idx
    boxes = [NodeBox(node["name"], node["tier"]) for node in nodes]
    wires = [LinkLine((number[a], number[b]), gbps, 1) for a, b, gbps, _ in shown]
    shape = _place(boxes, wires, [node["kind"] == "arbiter" for node in nodes])
    for node, box in zip(nodes, boxes, strict=True):
        node |= {"x": round(box.x, 4), "y": round(box.y, 4)}
    links = dict(_directions(shown, names, number))
    return Network(nodes, links, shape, names[:n_hosts])


def _arbiters(ports: Iterable[tuple[str, str]], names: Sequence[str]) -> "list[tuple[str, str]]":
    """Returns the nodes that a network does not name, each with its switch."""
    known = set(names)
    found = set()
    for source, link in ports:
        target = link[len(source) + 1 :]
        # Parallel links have a number at the end: `h0>s0.2`.
        ends = [end for end in (target, target.rpartition(".")[0]) if end in known]
        if source not in known and ends:
            found.add((source, ends[0]))
        elif source in known and not ends:
            found.add((target.partition(".")[0], source))
    return sorted(found)


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


def _place(boxes: Sequence[NodeBox], wires: Sequence[LinkLine], is_arbiter: Sequence[bool]) -> str:
    """Sets the places of nodes, from 0 to 1 in both directions, and returns their shape."""
    for wire in wires:
        a, b = wire.ends
        boxes[a].near.append(b)
        boxes[b].near.append(a)
    hosts = [box for box in boxes if box.tier == 0]
    if len(hosts) == len(boxes) - 1 and len(hosts) > 2:
        shape = "circle"
        boxes[-1].x = boxes[-1].y = 0.0
        n = len(hosts) - sum(is_arbiter)
        for place, box in enumerate(hosts):
            # Arbiters are between the last host and the first.
            angle = -2 * math.pi * (n - 0.5 if is_arbiter[place] else place) / n
            # The first host is on the right: links to the side are the longest on a screen.
            radius = 0.62 + 0.2 * (place - n) if is_arbiter[place] else 1.0
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
