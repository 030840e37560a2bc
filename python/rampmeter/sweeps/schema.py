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
            "description": "Transports such as dcpim or phost:reference, or tables of them.",
            "anyOf": [
                _TEXT,
                {**_LIST, "items": _TRANSPORT},
            ],
        },
        "seeds": {
            "description": "Seeds of each point: how many, or a list.",
            "anyOf": [_COUNT, {**_LIST, "items": {"type": "integer", "minimum": 0}}],
        },
        "precision": {
            "description": "Seeds are added until half the interval is this share of the mean.",
            "type": "number",
            "exclusiveMinimum": 0,
            "exclusiveMaximum": 1,
        },
        "metric": {"description": "The column whose interval `precision` is about.", **_TEXT},
        "seeds-max": {"description": "Seeds of a point at most.", **_COUNT},
        "grid": {
            "description": "Keys such as workload.load with values: every combination is a point.",
            **_AXES,
        },
        "zip": {"description": "Keys with equally many values, taken together.", **_AXES},
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
                "number": {"description": "How many.", **_COUNT, "maximum": SAMPLES_MAX},
                "seed": {"description": "What they are drawn with.", "type": "integer"},
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
