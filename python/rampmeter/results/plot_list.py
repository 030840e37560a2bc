"""Lists of the plots of results: each public method of a class is a plot."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Method = TypeVar("Method", bound=Callable[..., Any])


def needs(*tables: str) -> Callable[[Method], Method]:
    """Marks a plot of a table that not every run has; one of several is enough."""

    def mark(method: Method) -> Method:
        method.__dict__["needs"] = tables
        return method

    return mark


def is_plot(name: str, value: object) -> bool:
    """Returns true if an attribute of a class is a plot."""
    return not name.startswith("_") and callable(value)


class PlotList:
    """Plots of one result; `rampmeter plot` draws every public method of a subclass."""

    @classmethod
    def names(cls) -> list[str]:
        """Returns the names of the plots, in the order of their definitions."""
        own = {name: value for name, value in vars(cls).items() if name not in vars(PlotList)}
        return [name for name, value in own.items() if is_plot(name, value)]

    def available(self) -> "dict[str, Callable[[], Figure]]":
        """Returns the plots for which there is data, by name."""
        found = {name: getattr(self, name) for name in self.names()}
        return {
            name: plot
            for name, plot in found.items()
            if not (tables := getattr(plot, "needs", ())) or any(map(self._has, tables))
        }

    def _has(self, _table: str) -> bool:
        """Returns true if the result has a table."""
        return False
