"""The folder of a sweep's results."""

from pathlib import Path

import pyarrow as pa

from rampmeter.sweeps.dataset import RUNS, Dataset


def test_partial_files_of_killed_drivers_are_removed_after_storing(tmp_path: Path) -> None:
    dataset = Dataset(str(tmp_path))
    dataset.put(RUNS, 0, 1, pa.table({"point": [0], "seed": [1]}))
    folder = tmp_path / RUNS / "point-00000"
    left = folder / f".seed-1.parquet.{'0' * 32}"
    # Another shard may be writing this one now.
    current = folder / f".seed-2.parquet.{'0' * 32}"
    for part in (left, current):
        part.write_bytes(b"half")
    dataset.remove_parts()
    assert sorted(folder.iterdir()) == [current, folder / "seed-1.parquet"]
    assert dataset.done() == {(0, 1)}
