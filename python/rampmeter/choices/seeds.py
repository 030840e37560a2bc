"""Seeds of runs: a number of them from the plan's on, or the seeds themselves.

One rule for `--seeds`, `rampmeter.compare` and `rampmeter.sweep`: a whole number is a count, and a
list, a range or a text such as `3..7` or `2,9` are the seeds. `[sweep]` has numbers and lists.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, TypeAlias

from rampmeter.choices.axes import Uniform
from rampmeter.choices.grammar import parse_values
from rampmeter.text.arguments import argument_error, whole_argument
from rampmeter.text.locations import Location

Seeds: TypeAlias = int | Sequence[int]
"""A number of seeds, or the seeds."""
SEED_MAX: Final = 2**63 - 1
"""The largest whole number of a plan."""
N_SEEDS_MAX: Final = 1_000_000
"""Maximum number of seeds."""
EXPECTED: Final = "a number, a range or a list of seeds"


def parse_seeds(text: str, where: Location) -> Seeds:
    """Returns the number of seeds, or the seeds of a range or a list.

    >>> [parse_seeds(text, Location()) for text in ("5", "1e3", "3..5", "0..0", "2,9")]
    [5, 1000, [3, 4, 5], [0], [2, 9]]
    """
    if not text.strip():
        raise where.error(expected=EXPECTED, got=repr(text))
    values = parse_values(text, where)
    is_count = "," not in text and ".." not in text
    if is_count and isinstance(values, list):
        # As in Python, 2.0 is 2.
        values = [int(v) if isinstance(v, float) and v.is_integer() else v for v in values]
    if isinstance(values, Uniform) or not all(type(value) is int for value in values):
        raise where.error(expected=EXPECTED, got=text)
    seeds = [value for value in values if isinstance(value, int)]
    return check_seeds(seeds[0] if is_count else seeds, where)


def seeds_argument(name: str, value: Any) -> Seeds:
    """Returns the seeds of an argument; raises `PlanError` for another value.

    Whole numbers may be floats, as those of NumPy often are: `2.0` is 2.
    """
    where = Location(key=name)
    if isinstance(value, str):
        return parse_seeds(value, where)
    if isinstance(value, bytes | bytearray | Mapping):
        raise argument_error(name, EXPECTED, value)
    if not isinstance(value, Iterable):
        return whole_argument(name, value, 1, N_SEEDS_MAX)
    seeds = [whole_argument(f"{name}[{idx}]", one, 0, SEED_MAX) for idx, one in enumerate(value)]
    if not seeds:
        raise argument_error(name, EXPECTED, value)
    return check_seeds(seeds, where)


def check_seeds(seeds: Seeds, where: Location) -> Seeds:
    """Returns seeds that differ and that plans may have; raises `PlanError` for others."""
    if isinstance(seeds, int):
        if not 1 <= seeds <= N_SEEDS_MAX:
            raise where.error(expected=f"a number from 1 to {N_SEEDS_MAX}", got=seeds)
        return seeds
    for seed in seeds:
        if not 0 <= seed <= SEED_MAX:
            raise where.error(expected=f"seeds from 0 to {SEED_MAX}", got=seed)
    if not seeds or len(set(seeds)) < len(seeds):
        raise where.error(expected="seeds that differ", got=[*seeds])
    return seeds


def listed(seeds: Seeds, first: int) -> tuple[int, ...]:
    """Returns the seeds themselves; a number of them begins with `first`.

    >>> listed(3, 7), listed([2, 9], 7)
    ((7, 8, 9), (2, 9))
    """
    return tuple(range(first, first + seeds) if isinstance(seeds, int) else seeds)


def extended(seeds: Sequence[int], count: int) -> tuple[int, ...]:
    """Returns `count` seeds: those listed, and then the numbers after the largest one.

    >>> extended([9, 2], 4), extended([9, 2], 1)
    ((9, 2, 10, 11), (9,))
    """
    after = max(seeds) + 1
    return (*seeds, *range(after, after + max(0, count - len(seeds))))[:count]
