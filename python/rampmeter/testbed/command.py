"""Commands of iproute2, what they need, and how to get it without being root."""

import os
import shutil
import subprocess
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

CAPABILITIES: Final = {"CAP_NET_ADMIN": 12, "CAP_SYS_ADMIN": 21}
"""What it takes to make links and namespaces, by number."""

SYSTEM_FOLDERS: Final = ("/usr/sbin", "/sbin")
"""Where `ip` and `tc` are, though the paths of ordinary users leave them out."""

IN_USER_NAMESPACE: Final = 'ip link set lo up && mount -t tmpfs tmpfs /run && exec "$@"'
"""`ip netns` keeps its names in /run, where only root may write."""


class TestbedError(Exception):
    """The testbed cannot do what it was asked; the message says what is missing."""

    __test__ = False


def is_privileged() -> bool:
    """Whether this process may make network namespaces."""
    for line in Path("/proc/self/status").read_text("utf-8").splitlines():
        if line.startswith("CapEff:"):
            effective = int(line.split()[1], 16)
            return all(effective >> number & 1 for number in CAPABILITIES.values())
    return False


def require_privilege() -> None:
    """Raise `TestbedError` where network namespaces cannot be made."""
    if not is_privileged():
        raise TestbedError(
            f"testbed: expected {' and '.join(CAPABILITIES)}, this process has not got them;"
            " run as root or in a user namespace"
        )


def enter_user_namespace(argv: Sequence[str]) -> None:
    """Run a command instead of this one, as root of a user namespace of its own.

    Does nothing where namespaces can be made anyway. Otherwise does not return: give it what
    started this program, `sys.orig_argv`. Raises `TestbedError` where that is not permitted.
    """
    if is_privileged():
        return
    unshare = [tool("unshare"), "--user", "--map-root-user", "--net", "--mount", "sh", "-c"]
    try:
        run([*unshare, IN_USER_NAMESPACE, "sh", "true"])
    except TestbedError as error:
        raise TestbedError(
            f"testbed: expected root, or leave to make a user namespace; {error}"
        ) from None
    os.execv(unshare[0], [*unshare, IN_USER_NAMESPACE, "sh", *argv])


def tool(name: str) -> str:
    """Where a program is; raises `TestbedError` where it is not installed."""
    folders = os.pathsep.join((os.environ.get("PATH", os.defpath), *SYSTEM_FOLDERS))
    found = shutil.which(name, path=folders)
    if found is None:
        package = "util-linux" if name in ("unshare", "chrt") else "iproute2"
        raise TestbedError(f"testbed: expected the program {name}, install {package}")
    return found


def ip(lines: Iterable[str], namespace: str | None = None) -> None:
    """Run lines of `ip`, all in one process and until the first that fails."""
    where = [] if namespace is None else ["-netns", namespace]
    _batch([tool("ip"), *where], lines)


def ip_each(lines: Iterable[str]) -> None:
    """Run lines of `ip`, those after one that fails too."""
    _batch([tool("ip"), "-force"], lines)


def tc(lines: Iterable[str], namespace: str) -> None:
    """Run lines of `tc`, all in one process and until the first that fails."""
    _batch([tool("tc"), "-netns", namespace], lines)


def run(argv: Sequence[str], stdin: str = "") -> str:
    """Run a program to its end and return what it prints.

    It is in a process group of its own, so that Ctrl-C on a terminal does not end it halfway.
    """
    done = subprocess.run(
        argv, input=stdin, capture_output=True, text=True, check=False, process_group=0
    )
    if done.returncode != 0:
        raise TestbedError(f"{' '.join(argv)}: {_message(done, stdin)}")
    return done.stdout


def _batch(argv: Sequence[str], lines: Iterable[str]) -> None:
    run([*argv, "-batch", "-"], "".join(f"{line}\n" for line in lines))


def _message(done: "subprocess.CompletedProcess[str]", stdin: str) -> str:
    """What a program says on failure; the line itself where it gives only a line's number."""
    said = done.stderr.strip().splitlines() or [f"ended with {done.returncode}"]
    where, colon, number = said[-1].partition("-:")
    if where == "Command failed " and colon and number.isdecimal():
        said[-1] = f"in `{stdin.splitlines()[int(number) - 1]}`"
    return "; ".join(said)
