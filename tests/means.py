"""Mean slowdowns of every transport and preset, with intervals, of two builds.

`python tests/means.py save FILE` runs this build and saves the means of each seed. The file runs
alone, so that the interpreter of an earlier build can run it too. `python tests/means.py compare
FILE FILE ...` prints a row for each transport and preset. It has the means and 95 % intervals of
all files, and the mean difference by seed between the first file and the second. It ends in
"outside" if a later mean is outside the first interval.
"""

import json
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from scipy import stats

import rampmeter as rm
from rampmeter.plan import schema

SEEDS = (1, 2, 3, 4, 5)
PLAN: dict[str, Any] = {
    "topology": {"kind": "leaf-spine", "racks": 4, "hosts-per-rack": 8, "spines": 4},
    "workload": {"pattern": "all-to-all", "sizes": "imc10", "load": 0.6, "flows": 2_000},
}
Means = dict[str, list[float]]


def means(transport: str, preset: str) -> list[float]:
    """Returns the mean slowdown of delivered flows for each seed; nothing if a plan is refused."""
    found = []
    for seed in SEEDS:
        try:
            done = rm.run(
                transport={"name": transport, "preset": preset}, seed=seed, quiet=True, **PLAN
            )
        except rm.PlanError:
            return []
        pairs = zip(
            done.flows["fct_ps"].to_pylist(), done.flows["ideal_ps"].to_pylist(), strict=True
        )
        found.append(float(np.mean([fct / ideal for fct, ideal in pairs if fct is not None])))
    return found


def save(file: Path) -> None:
    """Runs all transports and presets."""
    warnings.simplefilter("ignore")
    table: Means = {}
    for name in schema.names():
        for preset, _ in schema.transport_info(name)["presets"]:
            table[f"{name} {preset}"] = means(name, preset)
            file.write_text(json.dumps(table, indent=1) + "\n", encoding="utf-8")


def interval(values: list[float]) -> tuple[float, float]:
    """Returns a mean and half of its 95 % interval, by Student's distribution."""
    half = stats.t.ppf(0.975, len(values) - 1) * stats.sem(values)
    return float(np.mean(values)), float(half)


def text(of: tuple[float, float], sign: str = "") -> str:
    """Returns a mean and half of its interval with three decimals; none if they are large."""
    digits = 3 if max(map(abs, of)) < 50 else 0
    return f"{of[0]:{sign}.{digits}f} ± {of[1]:.{digits}f}"


def compare(files: list[Path]) -> None:
    """Prints the table of the rows that all files have."""
    tables: list[Means] = [json.loads(file.read_text(encoding="utf-8")) for file in files]
    for case in tables[0]:
        found = [table.get(case, []) for table in tables]
        if not all(found):
            continue
        first, *others = (interval(values) for values in found)
        by_seed = [after - before for before, after in zip(found[0], found[1], strict=True)]
        inside = [abs(mean - first[0]) <= first[1] for mean, _ in others]
        columns = [case, text(first), *map(text, others), text(interval(by_seed), "+")]
        outside = "" if all(inside) else "outside"
        sys.stdout.write("| " + " | ".join([*columns, outside]) + " |\n")


if __name__ == "__main__":
    if sys.argv[1] == "save":
        save(Path(sys.argv[2]))
    else:
        compare([Path(file) for file in sys.argv[2:]])
