"""Arms, i.e. systems that run a plan: `rampd,rampd:dctcp:ecn-packets=20,tcp:cubic,sim`.

    arms = arm { "," arm }
    arm  = "rampd" [ ":" transport ]      hosts, over the plan's transport or another
         | "tcp" [ ":" control ]          hosts, over the kernel's TCP
         | "sim" [ ":" transport ]        the simulator, with the delays that hosts had

A transport is written as in `naming`: a name, a preset, and keys, among them `fabric.ecn-bytes` and
`label`. A control is a congestion control of the kernel, with keys of the fabric; by default it is
the system's.
"""

import errno
import socket
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Final

from rampmeter import _core
from rampmeter.choices import naming
from rampmeter.choices.naming import TransportChoice
from rampmeter.plan.plan import Plan
from rampmeter.plan.transport_names import FABRIC
from rampmeter.results.run import Run
from rampmeter.testbed.command import TestbedError
from rampmeter.testbed.delay import Delays
from rampmeter.testbed.experiment import PLAN, Options, Over, bed_of, run_testbed, with_delays
from rampmeter.text.files import make_folder
from rampmeter.text.lists import split
from rampmeter.text.locations import Location

KINDS: Final = ("rampd", "tcp", "sim")
"""Hosts over a transport, hosts over the kernel's TCP, the simulator."""

WHERE: Final = Location(key="--arms")

DEFAULT_CONTROL: Final = Path("/proc/sys/net/ipv4/tcp_congestion_control")


@dataclass(frozen=True)
class Arm:
    """One system that runs a plan."""

    kind: str
    choice: TransportChoice | None = None
    """The transport, or the kernel's congestion control; `None` for the plan's, or the system's."""

    @property
    def text(self) -> str:
        """The arm in the command line's notation, or its label.

        >>> parse("rampd:dctcp:ecn-packets=20")[0].text
        'rampd:dctcp:ecn-packets=20'
        """
        if self.choice is None:
            return self.kind
        return self.choice.title or f"{self.kind}:{self.choice.text}"

    @property
    def label(self) -> str:
        """Name in tables; without a congestion control, the system's."""
        return f"tcp:{self.control}" if self.kind == "tcp" and self.choice is None else self.text

    @property
    def folder(self) -> str:
        """The text as the name of a folder."""
        return TransportChoice(self.kind, title=self.text).folder

    @property
    def control(self) -> str | None:
        """The kernel's congestion control, if this is an arm of the kernel's TCP."""
        if self.kind != "tcp":
            return None
        if self.choice is None:
            return DEFAULT_CONTROL.read_text(encoding="utf-8").strip()
        return self.choice.name

    def of(self, plan: Plan) -> Plan:
        """Returns the plan as this arm runs it."""
        if self.choice is None:
            return plan
        if self.kind == "tcp":
            return plan.with_(*self.choice.settings.items())
        return self.choice.of(plan)

    def check(self, plan: Plan) -> None:
        """Raises `PlanError` or `TestbedError` if this machine cannot run it, before any arm is."""
        bed = bed_of(self.of(plan))
        if self.control is None:
            return
        if self.control == "dctcp" and bed.mark_above_bytes is None:
            raise WHERE.at(self.text).error(
                expected="a value of fabric.ecn-bytes, at which ports mark"
            )
        require_control(self.control)


def parse(text: str) -> list[Arm]:
    """Parses a list of arms.

    >>> [arm.label for arm in parse("rampd,rampd:dctcp:gain=0.1,ecn-packets=20,sim")]
    ['rampd', 'rampd:dctcp:gain=0.1,ecn-packets=20', 'sim']
    """
    groups: list[list[str]] = []
    for item in split(text, WHERE):
        kind = item.partition(":")[0].strip()
        if kind in KINDS:
            groups.append([item])
        elif groups and "=" in kind:
            groups[-1].append(item)
        else:
            raise WHERE.error(expected=f"some of {', '.join(KINDS)}", got=item)
    arms = [_parsed(",".join(group)) for group in groups]
    naming.distinct([TransportChoice(arm.kind, title=arm.text) for arm in arms], WHERE)
    first = next((arm for arm in arms if arm.kind != "sim"), None)
    if first is None or arms[0] is not first:
        raise WHERE.error(expected="rampd or tcp before sim, which uses their delays", got=text)
    return arms


def run_arms(
    plan: Plan,
    out: Path,
    arms: Sequence[Arm],
    progress: Callable[[str, int, int], None],
    options: Options | None = None,
) -> Iterator[tuple[str, Run]]:
    """Runs a plan with each arm in turn; each has a folder in `out`.

    Simulators use the delays that were measured for the arm before them, so none is the first.
    `progress` receives for each arm the number of arrived messages and of all messages.
    """
    for arm in arms:
        arm.check(plan)
    delays: Delays | None = None
    for arm in arms:
        folder, mine = out / arm.folder, arm.of(plan)
        on_progress = partial(progress, arm.label)
        if arm.kind != "sim":
            over: Over = "tcp" if arm.kind == "tcp" else "rampd"
            own = replace(options or Options(), congestion_control=arm.control)
            yield arm.label, run_testbed(mine, folder, over, on_progress, own)
            delays = _delays(Plan((folder / PLAN).read_text(encoding="utf-8"), plan.base))
        elif delays is not None:
            yield arm.label, _simulate(with_delays(bed_of(mine).plan, delays), folder, on_progress)


def require_control(name: str) -> None:
    """Raises `TestbedError` if the kernel has no such congestion control."""
    with socket.socket() as probe:
        try:
            probe.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, name.encode())
        except OSError as error:
            is_unknown = error.errno == errno.ENOENT
            why = "not in this kernel" if is_unknown else error.strerror
            raise TestbedError(f"{WHERE}: congestion control {name}: {why}") from None


def _parsed(text: str) -> Arm:
    kind, colon, rest = text.partition(":")
    if not colon:
        kind, comma, _ = text.partition(",")
        if comma:
            raise WHERE.error(expected=f"{kind}:NAME before keys", got=text)
        return Arm(kind)
    choices = naming.transports(rest, WHERE)
    if rest.strip() == naming.ALL or len(choices) != 1:
        raise WHERE.error(expected=f"one name after {kind}", got=rest)
    (choice,) = choices
    foreign = [key for key in choice.settings if not key.startswith(FABRIC)]
    if kind == "tcp" and (choice.preset or foreign):
        got = choice.preset or foreign[0]
        raise WHERE.at(text).error(expected="keys of the fabric, or label", got=got)
    return Arm(kind, choice)


def _simulate(plan: Plan, folder: Path, progress: Callable[[int, int], None]) -> Run:
    make_folder(folder)

    def watch(at: "_core.Progress") -> bool:
        progress(at["delivered"], at["total"] or 0)
        return True

    _core.run(plan.text, str(plan.base), str(folder), watch)
    return Run(folder)


def _delays(measured: Plan) -> Delays:
    """Returns the delays of a plan that `with_delays` has made."""
    way = int(measured.get("topology.host-ns"))
    return Delays(way, way, 2 * way)
