"""The smallest testbed of network namespaces, for the tests that need one."""

import pytest

from rampmeter.testbed import Fabric, Shape, TestbedError, is_privileged
from rampmeter.testbed.experiment import (
    find_rampd,
)


def why_not() -> str | None:
    """Returns the reason why the system cannot run the tests."""
    if not is_privileged():
        return "needs root"
    try:
        find_rampd()
        with Fabric(shape()):
            pass
    except TestbedError as error:
        return str(error)
    return None


def shape() -> Shape:
    """Returns the smallest fabric."""
    return Shape(racks=1, hosts_per_rack=2, spines=0, access_bps=50_000_000)


REASON = why_not()
needs_namespaces = pytest.mark.skipif(REASON is not None, reason=f"no testbed here: {REASON}")
