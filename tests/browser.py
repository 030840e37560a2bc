"""Pages in a browser: scripts, the log of the console, and waiting."""

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from selenium.webdriver import Chrome

PHONE = {"width": 390, "height": 844, "deviceScaleFactor": 1, "mobile": True}


def until(predicate: Callable[[], Any], seconds: float = 20.0) -> Any:
    """Waits until `predicate` returns a true value, and returns it."""
    ends = time.monotonic() + seconds
    while not (found := predicate()):
        assert time.monotonic() < ends
        time.sleep(0.05)
    return found


def errors(browser: "Chrome") -> list[str]:
    """Returns the errors and warnings in the console."""
    lines: list[dict[str, Any]] = browser.get_log("browser")  # type: ignore[no-untyped-call]
    return [str(line["message"]) for line in lines if line["level"] in ("SEVERE", "WARNING")]


def run_script(browser: "Chrome", script: str, *arguments: Any) -> Any:
    """Runs a script in the page, and returns its result."""
    return browser.execute_script(script, *arguments)


def has_no_sideways_scroll(browser: "Chrome") -> bool:
    """Returns true if the page is not wider than the window."""
    width, inner = run_script(browser, "return [document.documentElement.scrollWidth, innerWidth];")
    return bool(width == inner)
