"""The names of the package, `rampmeter.run` and so on; the package imports them on first use."""

from rampmeter import plan_tables, transports
from rampmeter._core import VERSION as __version__
from rampmeter._core import (
    EndpointError,
    Host,
    InternalError,
    MessageToSend,
    Packet,
    PlanError,
    ResultError,
    distribution_mean,
    distributions,
)
from rampmeter.analysis.homa import homa_priorities
from rampmeter.analysis.hyline import hyline_threshold
from rampmeter.analysis.pias import pias_thresholds
from rampmeter.choices.axes import Uniform
from rampmeter.endpoint import Endpoint
from rampmeter.parts.collective import collective
from rampmeter.parts.flows import flows
from rampmeter.parts.shortcuts import (
    all_to_all,
    data_mining,
    dumbbell,
    fat_tree,
    imc10,
    leaf_spine,
    pod,
    star,
    web_search,
)
from rampmeter.plan.base import Transport
from rampmeter.plan.plan import Plan
from rampmeter.plan_tables import *  # noqa: F403 (their list is `plan_tables.__all__`)
from rampmeter.results import notebook as _notebook
from rampmeter.results.comparison import Comparison
from rampmeter.results.overlay import Overlay
from rampmeter.results.run import Run
from rampmeter.running.api import compare, run, run_async
from rampmeter.running.callback import RunProgress
from rampmeter.running.conversion import convert
from rampmeter.sweeps.api import sweep
from rampmeter.sweeps.engines.base import EngineError
from rampmeter.sweeps.results import SweepResults
from rampmeter.transports import *  # noqa: F403 (their list is `transports.__all__`)

__all__: list[str] = [
    "Comparison",
    "Endpoint",
    "EndpointError",
    "EngineError",
    "Host",
    "InternalError",
    "MessageToSend",
    "Overlay",
    "Packet",
    "Plan",
    "PlanError",
    "ResultError",
    "Run",
    "RunProgress",
    "SweepResults",
    "Transport",
    "Uniform",
    "__version__",
    "all_to_all",
    "collective",
    "compare",
    "convert",
    "data_mining",
    "distribution_mean",
    "distributions",
    "dumbbell",
    "fat_tree",
    "flows",
    "homa_priorities",
    "hyline_threshold",
    "imc10",
    "leaf_spine",
    "pias_thresholds",
    "pod",
    "run",
    "run_async",
    "star",
    "sweep",
    "web_search",
]
__all__ += plan_tables.__all__
__all__ += transports.__all__

_notebook.show_arrow_tables()
