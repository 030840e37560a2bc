"""Commands of iproute2, their privileges, and a way to get these without root."""

import os
import shutil
import subprocess
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

CAPABILITIES: Final = {"CAP_NET_ADMIN": 12, "CAP_SYS_ADMIN": 21}
"""Capabilities that links and namespaces require, by number."""

SYSTEM_FOLDERS: Final = ("/usr/sbin", "/sbin")
"""Folders of `ip` and `tc` that the paths of ordinary users may lack."""

IN_USER_NAMESPACE: Final = 'ip link set lo up && mount -t tmpfs tmpfs /run && exec "$@"'
"""Shell command; it mounts a new /run: `ip netns` stores names there, and only root may write."""


class TestbedError(Exception):
    """A requirement of the testbed is missing; the message names it."""

    code: Final = "testbed"
    __test__ = False


def is_privileged() -> bool:
    """Returns true if this process may make network namespaces."""
    for line in Path("/proc/self/status").read_text("utf-8").splitlines():
        if line.startswith("CapEff:"):
            effective = int(line.split()[1], 16)
            return all(effective >> number & 1 for number in CAPABILITIES.values())
    return False


def require_privilege() -> None:
    """Raises `TestbedError` if network namespaces cannot be made."""
    if not is_privileged():
        raise TestbedError(
            f"testbed: expected {' and '.join(CAPABILITIES)}, which this process lacks;"
            " run as root or in a user namespace"
        )


def enter_user_namespace(argv: Sequence[str]) -> None:
    """Replaces this process by a command, as root of a separate user namespace.

    Does nothing if namespaces can be made anyway. Otherwise it does not return: `argv` is the
    command line of this program, `sys.orig_argv`. Raises `TestbedError` if that is not permitted.
    """
    if is_privileged():
        return
    unshare = [tool("unshare"), "--user", "--map-root-user", "--net", "--mount", "sh", "-c"]
    try:
        run([*unshare, IN_USER_NAMESPACE, "sh", "true"])
    except TestbedError as error:
        raise TestbedError(f"testbed: requires root or user namespaces; {error}") from None
    os.execv(unshare[0], [*unshare, IN_USER_NAMESPACE, "sh", *argv])


def tool(name: str) -> str:
    """Returns the path of a program; raises `TestbedError` if it is not installed."""
    folders = os.pathsep.join((os.environ.get("PATH", os.defpath), *SYSTEM_FOLDERS))
    found = shutil.which(name, path=folders)
    if found is None:
        package = "util-linux" if name in ("unshare", "chrt") else "iproute2"
        raise TestbedError(f"testbed: expected the program {name}, install {package}")
    return found


def ip(lines: Iterable[str], namespace: str | None = None) -> None:
    """Runs lines of `ip` in one process; stops at the first that fails."""
    where = [] if namespace is None else ["-netns", namespace]
    _batch([tool("ip"), *where], lines)


def ip_each(lines: Iterable[str]) -> None:
    """Runs lines of `ip`; continues after those that fail."""
    _batch([tool("ip"), "-force"], lines)


def tc(lines: Iterable[str], namespace: str) -> None:
    """Runs lines of `tc` in one process; stops at the first that fails."""
    _batch([tool("tc"), "-netns", namespace], lines)


def run(argv: Sequence[str], stdin: str = "") -> str:
    """Runs a program to its end and returns its output.

    It is in a separate process group, so that Ctrl-C on a terminal does not end it early.
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
    """Returns a failed program's error message, with the input line if it has only its number."""
    lines = done.stderr.strip().splitlines() or [f"ended with {done.returncode}"]
    where, colon, number = lines[-1].partition("-:")
    if where == "Command failed " and colon and number.isdecimal():
        lines[-1] = f"in `{stdin.splitlines()[int(number) - 1]}`"
    return "; ".join(lines)
