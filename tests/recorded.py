"""Digests of results of every transport and preset, which change if results do.

`python -m tests.recorded` renews them. A commit that does so names the cause and the size of
the change.
"""

import hashlib
import json
import warnings
from pathlib import Path
from typing import Any

import pyarrow.compute as pc

import rampmeter as rm
from rampmeter.plan import schema

FILE = Path(__file__).parents[1] / "papers" / "recorded.json"
COLUMNS = (
    "flow", "src", "dst", "size_bytes", "arrival_ps", "fct_ps", "acked_ps", "ideal_ps",
    "sent_bytes", "retransmitted_bytes", "status",
)  # fmt: skip
NUMBERS = ("delivered_share", "goodput_gbps", "utilisation")
"""Numbers of `summary.json` that are not sums of flows."""

UNIFORM = {
    "topology": {"kind": "leaf-spine", "racks": 3, "hosts-per-rack": 4, "spines": 2},
    "workload": {"pattern": "all-to-all", "sizes": "imc10", "load": 0.7, "flows": 1_000},
    "clocks": {"offset-us": 0.2, "drift-ppm": 10},
    "faults": {"loss": 0.001},
}
"""Hosts of one rate, whose clocks differ, in a network that loses packets."""
MIXED = {
    "topology": {
        "kind": "links",
        "hosts": 8,
        "switches": 4,
        "links": [
            *({"between": [f"h{n}", f"s{n % 2}"], "gbps": (25.0, 100.0)[n // 4]} for n in range(8)),
            *(
                {"between": [f"s{rack}", f"s{spine}"], "gbps": 200.0, "propagation-ns": 900.0}
                for rack in (0, 1)
                for spine in (2, 3)
            ),
        ],
    },
    "workload": {"pattern": "all-to-all", "sizes": "web-search", "load": 0.4, "flows": 300},
}
"""Hosts of two rates without faults."""
EQUAL = {
    "topology": {"kind": "star", "hosts": 8},
    "workload": {"pattern": "all-to-all", "sizes": {"fixed": 100_000}, "load": 0.8, "flows": 300},
}
"""Flows of one size, as in collectives. The ideal chooses which of them is served first; for
transports with packets the order follows from arrivals."""


def networks_of(transport: str) -> dict[str, dict[str, Any]]:
    """Returns the plans that are recorded of a transport, by name."""
    own = {"equal": EQUAL} if transport == "ideal" else {}
    return {"uniform": UNIFORM, "mixed": MIXED, **own}


def cases() -> list[tuple[str, str]]:
    """Returns every transport with each of its presets."""
    return [
        (name, preset)
        for name in schema.names()
        for preset, _ in schema.transport_info(name)["presets"]
    ]


def digest(transport: str, preset: str, plan: dict[str, Any]) -> str:
    """Returns a digest of a run's flows and numbers; the error's text if the plan is refused."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            done = rm.run(
                transport={"name": transport, "preset": preset}, seed=7, quiet=True, **plan
            )
        except rm.PlanError as error:
            return str(error)
    flows = done.flows.sort_by("flow").select(COLUMNS)
    # Digests are older than the present name of the status.
    flows = flows.set_column(
        flows.schema.get_field_index("status"),
        "status",
        pc.replace_substring(flows["status"], "delivered", "finished"),
    )
    rows = [",".join(map(str, row.values())) for row in flows.to_pylist()]
    # Sums of floating-point numbers depend on the processor in their last digits.
    values = {name: done.summary[name] for name in NUMBERS}
    numbers = [f"{name},{value:.9g}" for name, value in values.items() if value is not None]
    text = "\n".join([*rows, *numbers])
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def digests(transport: str, preset: str) -> dict[str, str]:
    """Returns the digests of a transport by network."""
    return {name: digest(transport, preset, plan) for name, plan in networks_of(transport).items()}


def recorded() -> dict[str, dict[str, dict[str, str]]]:
    """Returns the recorded results, by transport, preset and network."""
    table: dict[str, dict[str, dict[str, str]]] = json.loads(FILE.read_text(encoding="utf-8"))
    return table


if __name__ == "__main__":
    table: dict[str, dict[str, dict[str, str]]] = {}
    for transport, preset in cases():
        table.setdefault(transport, {})[preset] = digests(transport, preset)
    FILE.write_text(json.dumps(table, indent=2) + "\n", encoding="utf-8")
