"""Datacenter transport protocols, simulated packet by packet.

>>> import rampmeter as rm
>>> r = rm.run(
...     topology=rm.leaf_spine(racks=9, hosts_per_rack=16, spines=4),
...     transport=rm.DcPim(r=4, k=4),
...     workload=rm.imc10(load=0.6, flows=10_000),
...     seed=1,
... )  # doctest: +SKIP
>>> r.flows  # an Arrow table: arrival, source, destination, size, completion  # doctest: +SKIP
>>> r.plot.slowdown_by_size().savefig("slowdown.png")  # doctest: +SKIP
"""

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING

from rampmeter import extension

extension.load()

if TYPE_CHECKING:
    from rampmeter import api, plan_tables, transports
    from rampmeter.api import *  # noqa: F403 (their list is `api.__all__`)
    from rampmeter.plan_tables import *  # noqa: F403
    from rampmeter.transports import *  # noqa: F403

    __all__: list[str] = []
    __all__ += api.__all__
    __all__ += plan_tables.__all__
    __all__ += transports.__all__
else:

    def __getattr__(name: str) -> object:
        """Returns a name of `rampmeter.api`, or a module of the package, imported now.

        The command starts fast since it imports neither all names nor the libraries they use.
        """
        if name.startswith("__") and name not in ("__all__", "__version__"):
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        if name.islower() and find_spec(f"{__name__}.{name}") is not None:
            return import_module(f"{__name__}.{name}")
        try:
            value = getattr(import_module(f"{__name__}.api"), name)
        except AttributeError:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}") from None
        globals()[name] = value
        return value

    def __dir__() -> list[str]:
        """Returns the public names."""
        return __getattr__("__all__")
