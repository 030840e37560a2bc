"""The JSON Schema of the table `[sweep]`, which `rampmeter.sweeps.table` reads."""

from typing import Any, Final

from rampmeter.sweeps.table import SAMPLES_MAX

_TEXT: Final = {"type": "string"}
_LIST: Final = {"type": "array", "minItems": 1}
# A key may also be a table of keys: `grid = { workload = { load = [0.5, 0.6] } }`.
_VALUES: Final = {
    "anyOf": [_TEXT, _LIST, {"type": "object", "additionalProperties": {"anyOf": [_TEXT, _LIST]}}]
}
_AXES: Final = {"type": "object", "additionalProperties": _VALUES, "minProperties": 1}
_COUNT: Final = {"type": "integer", "minimum": 1}
_ENDS: Final = {"type": "array", "items": {"type": "number"}, "minItems": 2, "maxItems": 2}
_TRANSPORT: Final = {"anyOf": [_TEXT, {"type": "object", "required": ["name"]}]}

SWEEP: Final[dict[str, Any]] = {
    "description": "Points, transports and seeds of `rampmeter sweep`.",
    "type": "object",
    "additionalProperties": False,
    "properties": {
        "transports": {
            "description": "Transports, such as `dcpim` or `phost:reference`, or tables with "
            "`name`, `preset`, keys, `fabric` and `label`; that of the plan without it.",
            "anyOf": [
                _TEXT,
                {**_LIST, "items": _TRANSPORT},
            ],
        },
        "seeds": {
            "description": "Number of seeds of each point, from the plan's seed on, or a list of "
            "seeds. Without it 1, or 5 with `precision`.",
            "anyOf": [_COUNT, {**_LIST, "items": {"type": "integer", "minimum": 0}}],
        },
        "precision": {
            "description": "Required half-width of the 95 % interval of `metric`, divided by its "
            "mean. Seeds are added until it is reached.",
            "type": "number",
            "exclusiveMinimum": 0,
            "exclusiveMaximum": 1,
        },
        "metric": {
            "description": "Column of results for `precision`; `slowdown_mean` without it.",
            **_TEXT,
        },
        "seeds-max": {
            "description": "Maximum number of seeds of a point; 30 without it.",
            **_COUNT,
        },
        "flows": {
            "description": "`auto` chooses the number of flows of each point: those of the plan, "
            "doubled until the mean slowdown of a run is as precise as `precision` (0.05).",
            "const": "auto",
        },
        "flows-max": {
            "description": "Maximum of `flows`; 256000 without it.",
            **_COUNT,
        },
        "grid": {
            "description": "Keys with lists or ranges (`0.3..0.8:0.1`): every combination.",
            **_AXES,
        },
        "zip": {"description": "Keys with lists of equal lengths, value by value.", **_AXES},
        "points": {
            "description": "List of tables, all with the same keys.",
            "type": "array",
            "items": {"type": "object"},
        },
        "sample": {
            "description": "Random points: `number`, `seed` (1) and `axes`, keys with a list or "
            "with `{ uniform = [a, b] }` or `{ log-uniform = [a, b] }`.",
            "type": "object",
            "additionalProperties": False,
            "required": ["number", "axes"],
            "properties": {
                "number": {"description": "Number of points.", **_COUNT, "maximum": SAMPLES_MAX},
                "seed": {"description": "Seed of the random points.", "type": "integer"},
                "axes": {
                    "description": "Keys with a list of values, or uniform or log-uniform ends.",
                    "type": "object",
                    "minProperties": 1,
                    "additionalProperties": {
                        "anyOf": [
                            _TEXT,
                            _LIST,
                            {
                                "type": "object",
                                "properties": {"uniform": _ENDS, "log-uniform": _ENDS},
                                "additionalProperties": False,
                                "minProperties": 1,
                                "maxProperties": 1,
                            },
                        ]
                    },
                },
            },
        },
    },
}
