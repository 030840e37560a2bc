"""Former names of keys as arguments of classes, with the error that names the present one."""

from collections.abc import Collection
from typing import Final

from rampmeter._core import PlanError, migrate
from rampmeter.text.locations import SYNTAX, Location

TABLES: Final = ("transport", "deadlines", "fabric", "fabric.pfc", "measure", "run", "workload")
"""Tables whose keys were renamed."""


def former_name_error(
    kind: str, tag: tuple[str, str] | None, name: str, value: object, names: Collection[str]
) -> PlanError | None:
    """Returns the error of a former name as an argument of `kind`, whose arguments are `names`.

    `tag` is the key and the value that select the form of its table, such as the name of a
    transport. Returns `None` for other names. A number is named in the present unit.

    >>> str(former_name_error("Tcp", ("name", "tcp"), "queue", 5, ["switch_queue_packets"]))
    'Tcp.queue: expected switch_queue_packets=5, got the former name queue=5'
    """
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    key, number = name.replace("_", "-"), repr(value) if is_number else "0"
    if not key.isascii() or not key.replace("-", "").isalnum():
        return None
    form = f'{tag[0]} = "{tag[1]}"\n' if tag else ""
    for table in TABLES:
        text, settings = migrate(f"[{table}]\n{key} = {number}\n{form}", "")
        if not settings:
            continue
        present, _, at_present = text.splitlines()[1].partition(" = ")
        argument = present.replace("-", "_")
        if argument in names:
            expected, got = (
                (f"{argument}={at_present}", f"the former name {name}={number}")
                if is_number
                else (argument, f"the former name {name}")
            )
            where = Location(key=kind).at(name)
            return where.error(expected=expected, got=got, code=SYNTAX)
    return None
