"""JSON files of result folders."""

import json
from pathlib import Path
from typing import Any

from rampmeter.text.locations import Location


def read_json(file: Path) -> dict[str, Any]:
    """Reads a JSON object from a result folder."""
    try:
        value = json.loads(file.read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise Location(file).result_error(str(error.strerror or error)) from None
    except ValueError as error:
        raise Location(file).result_error(expected="JSON", got=error) from None
    if not isinstance(value, dict):
        raise Location(file).result_error(expected="a JSON object", got=type(value).__name__)
    return value
