"""Homa's priorities for any distribution of message sizes (Homa, SIGCOMM 2018, §3.4)."""

import json
from os import PathLike, fspath
from typing import TypedDict

from rampmeter import _core
from rampmeter.plan.base import Sizes
from rampmeter.text.toml import plain


class HomaPriorities(TypedDict):
    """Keys of Homa and Homa Aeolus."""

    unscheduled_priorities: int
    cutoffs_bytes: list[int]


def homa_priorities(
    sizes: Sizes,
    rtt_bytes: int,
    *,
    priorities: int = 8,
    packet: int = 1460,
    base: str | PathLike[str] = ".",
) -> HomaPriorities:
    """Returns priorities of unscheduled packets, for `rm.Homa(**...)` and `rm.HomaAeolus(**...)`.

    Unscheduled packets get a share of the `priorities` equal to their share of the bytes, at least
    one and not all. Cut-offs between them, in bytes, divide the unscheduled bytes equally. `sizes`
    is as in plans: a distribution's name or a table; files are relative to `base`. `rtt_bytes` is
    the length that a message sends without a grant. `packet` is the payload of a full packet in
    bytes.

    >>> homa_priorities({"fixed": 1_000}, rtt_bytes=10_000)["unscheduled_priorities"]
    7
    """
    if rtt_bytes < 1:
        raise ValueError(f"rtt_bytes: expected at least 1, got {rtt_bytes}")
    if not 2 <= priorities <= 8:
        raise ValueError(f"priorities: expected 2 to 8, got {priorities}")
    table = sizes if isinstance(sizes, str) else {key: plain(value) for key, value in sizes.items()}
    text, folder = json.dumps(table), fspath(base)
    levels, cutoffs = _core.homa_priorities(text, folder, packet, float(rtt_bytes), priorities)
    return {"unscheduled_priorities": levels, "cutoffs_bytes": cutoffs}
