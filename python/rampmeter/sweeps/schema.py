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
    "description": "At which points, with which transports and seeds `rampmeter sweep` runs this.",
    "type": "object",
    "additionalProperties": False,
    "properties": {
        "transports": {
            "description": "Transports, e.g. dcpim or phost:reference, or tables of them.",
            "anyOf": [
                _TEXT,
                {**_LIST, "items": _TRANSPORT},
            ],
        },
        "seeds": {
            "description": "Seeds of each point: their number, or a list.",
            "anyOf": [_COUNT, {**_LIST, "items": {"type": "integer", "minimum": 0}}],
        },
        "precision": {
            "description": "Maximum of half the interval over the mean; it adds seeds.",
            "type": "number",
            "exclusiveMinimum": 0,
            "exclusiveMaximum": 1,
        },
        "metric": {"description": "Column that `precision` applies to.", **_TEXT},
        "seeds-max": {"description": "Maximum number of seeds of a point.", **_COUNT},
        "grid": {
            "description": "Keys, e.g. workload.load, with values: every combination is a point.",
            **_AXES,
        },
        "zip": {"description": "Keys with lists of equal lengths, which vary together.", **_AXES},
        "points": {
            "description": "Listed points, all of the same keys.",
            "type": "array",
            "items": {"type": "object"},
        },
        "sample": {
            "description": "Random points.",
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
