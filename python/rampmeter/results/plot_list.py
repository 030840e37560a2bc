"""Lists of the plots of results: each public method of a class is a plot."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Method = TypeVar("Method", bound=Callable[..., Any])


def needs(table: str) -> Callable[[Method], Method]:
    """Marks a plot of a table that not every run has."""

    def mark(method: Method) -> Method:
        method.__dict__["needs"] = table
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
        return [name for name, value in vars(cls).items() if is_plot(name, value)]

    def available(self) -> "dict[str, Callable[[], Figure]]":
        """Returns the plots for which there is data, by name."""
        found = {name: getattr(self, name) for name in self.names()}
        return {
            name: plot for name, plot in found.items() if self._has(getattr(plot, "needs", None))
        }

    def _has(self, table: str | None) -> bool:
        """Returns true if the result has a table, or if none is needed."""
        return table is None
