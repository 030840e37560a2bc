"""Memory of a run grows with the number of hosts, and not with its square."""

import subprocess
import sys

import pytest

PROGRAM = """
import sys
from pathlib import Path
import rampmeter as rm

k, transport = int(sys.argv[1]), sys.argv[2]
plan = rm.Plan.of(
    topology={"kind": "fat-tree", "k": k},
    transport={"name": transport},
    workload={"pattern": "permutation", "sizes": {"fixed": 65_536}},
)
rm.run(plan, out="out", quiet=True)
# The maximum of `getrusage` may be that of the process that started this one.
status = Path("/proc/self/status").read_text()
kilobytes = int(status.partition("VmHWM:")[2].split()[0])
print(kilobytes * 1024, plan.derived()["run-memory-bytes"])
"""


def maximum_memory(k: int, transport: str, folder: str) -> int:
    """Returns the maximum resident memory of a permutation on a fat-tree, in bytes.

    It is compared with the estimate of `rampmeter check`.
    """
    argv = [sys.executable, "-c", PROGRAM, str(k), transport]
    done = subprocess.run(
        argv, cwd=folder, capture_output=True, text=True, timeout=100, check=False
    )
    assert done.returncode == 0, done.stderr
    measured, estimated = map(float, done.stdout.split())
    assert 0.4 < estimated / measured < 2.5, done.stdout
    return int(measured)


@pytest.mark.long
@pytest.mark.timeout(250)
@pytest.mark.parametrize("transport", ["dcpim", "ndp", "homa", "sird", "hpcc", "dctcp", "phost"])
def test_memory_of_a_host_does_not_grow_with_their_number(
    transport: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """A permutation of 64 KB on fat-trees of 1024 and 8192 hosts.

    Four bytes for each host below a peer's number would be 16 KB a host on the larger one. Packets
    of HPCC carry a record of each hop.
    """
    ks = (16, 32)
    small, large = (maximum_memory(k, transport, str(tmp_path_factory.mktemp(f"k{k}"))) for k in ks)
    added = ks[1] ** 3 // 4 - ks[0] ** 3 // 4
    limit = 32 if transport == "hpcc" else 16
    assert (large - small) / added < limit * 1024
