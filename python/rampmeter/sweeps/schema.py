"""The JSON Schema of the table `[sweep]`, which `rampmeter.sweeps.table` reads."""

from typing import Any, Final

from rampmeter.sweeps.table import SAMPLES_MAX

_TEXT: Final = {"type": "string"}
_VALUES: Final = {"anyOf": [_TEXT, {"type": "array", "minItems": 1}, {"type": "object"}]}
_AXES: Final = {"type": "object", "additionalProperties": _VALUES}
_COUNT: Final = {"type": "integer", "minimum": 1}

SWEEP: Final[dict[str, Any]] = {
    "description": "At which points, with which transports and seeds `rampmeter sweep` runs this.",
    "type": "object",
    "additionalProperties": False,
    "properties": {
        "transports": {
            "description": "Transports such as dcpim or phost:reference, or tables of them.",
            "anyOf": [
                _TEXT,
                {"type": "array", "items": {"anyOf": [_TEXT, {"type": "object"}]}},
            ],
        },
        "seeds": {
            "description": "Seeds of each point: how many, or a list.",
            "anyOf": [_COUNT, {"type": "array", "items": {"type": "integer", "minimum": 0}}],
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
                    **_AXES,
                },
            },
        },
    },
}
