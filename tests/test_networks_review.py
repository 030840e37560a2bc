"""Cases of docs/project/networks-review.md that no other test covers: flow hashes and two jobs."""

import collections
from pathlib import Path
from typing import Any

import pytest

import rampmeter as rm


def test_flows_by_hash_use_all_cores_of_a_fat_tree(tmp_path: Path) -> None:
    """256 flows from the first pod to the last, one path each: 16 a core, binomially."""
    rows = [f"{10 * n},{n % 16},{112 + n * 7 % 16},2000" for n in range(256)]
    file = tmp_path / "flows.csv"
    file.write_text("\n".join(["arrival_us,src,dst,size_bytes", *rows]) + "\n")
    done = rm.run(
        topology={"kind": "fat-tree", "k": 8},
        transport={"name": "dctcp"},
        workload={"pattern": "trace", "file": str(file)},
        fabric={"spray": "ecmp"},
        run={"paths": True, "sample-us": 0},
        seed=1,
        quiet=True,
    )
    assert done.paths is not None
    # Host, leaf switch, aggregation switch, core switch.
    cores = collections.Counter(str(path).split(">")[3] for path in done.paths["path"].to_pylist())
    assert cores.total() == 256
    assert len(cores) == 16
    # One core has less than 4 or more than 32 flows with a probability of 0.002.
    assert min(cores.values()) >= 4
    assert max(cores.values()) <= 32


def jobs(first_hosts: dict[str, int]) -> dict[str, Any]:
    """Returns the summary of an all-reduce of these hosts with an all-to-all of hosts 8 to 15."""
    topology: dict[str, Any] = {
        **{"kind": "leaf-spine", "racks": 4, "hosts-per-rack": 4, "spines": 2},
        **{"access-gbps": 100.0, "core-gbps": 100.0},
    }
    parts: list[dict[str, Any]] = [
        {"operation": "all-reduce", "algorithm": "ring", "hosts": first_hosts},
        {"operation": "all-to-all", "hosts": {"first": 8, "count": 8}, "start-us": 100},
    ]
    each: dict[str, Any] = {"pattern": "collective", "vector-bytes": 4_000_000, "rounds": 3}
    done = rm.run(
        topology=topology,
        transport={"name": "homa"},
        workload={"pattern": "mix", "parts": [each | part for part in parts]},
        seed=1,
        quiet=True,
    )
    return done.summary


def test_two_jobs_have_separate_rounds() -> None:
    """Jobs on hosts of their own racks do not delay one another; those that share hosts do."""
    apart = jobs({"first": 0, "count": 8})
    # Three rounds; each of eight hosts sends in 14 steps of a ring, and to seven others.
    assert apart["flows"]["submitted"] == 3 * 8 * (14 + 7)
    assert apart["flows"]["delivered"] == apart["flows"]["submitted"]
    operations = [row["operation"] for row in apart["collectives"]]
    assert operations == [*["all-reduce"] * 3, *["all-to-all"] * 3]
    reduces = [row["lower_bound_ratio"] for row in apart["collectives"][:3]]
    assert reduces == pytest.approx([reduces[0]] * 3, rel=0.01)
    assert 1.0 <= reduces[0] < 1.1
    shared = jobs({"first": 4, "count": 8})
    assert shared["collectives"][0]["lower_bound_ratio"] > 1.2
