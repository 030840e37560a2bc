"""A storage client that shares its core with a spinning program (cosy section 6.1).

The client has `depth` reads in flight, and does work at the submission and at the collection of
each. Its policy determines the detection of responses:

* `polling`: it polls all the time. Alone, or with a higher priority, it never yields the core;
  as one of two equals (`polling-fairshare`) it runs every other quantum.
* `interrupts`: it sleeps if no response is there. It is woken when the oldest response has waited
  for a threshold (Caladan's THRESH_QD), which coalesces interrupts.
* `predictable`: it submits a batch, sleeps until the bound of the last response, and collects all
  of them. Only a network that states bounds allows it.

A core is a clock that work advances. Only the network's latencies are random: they are drawn from a
run. Times are in microseconds.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from heapq import heappop, heappush
from typing import TYPE_CHECKING, Literal, TypeAlias, get_args

from rampmeter.on_demand import np
from rampmeter.results.run import Run

if TYPE_CHECKING:
    from numpy.typing import NDArray

Policy: TypeAlias = Literal["polling", "polling-fairshare", "interrupts", "predictable"]
POLICIES: tuple[Policy, ...] = get_args(Policy)


@dataclass(frozen=True, kw_only=True)
class Host:
    """Costs of work on the core. The paper states no values."""

    switch_us: float = 2.0
    """A switch between the programs, with the scheduler and cache misses. Between processes it is
    one to several us on servers; figures 6c and 6d have 0 to 8."""
    interrupt_us: float = 1.0
    """An interrupt or a timer, before the switch to the program that waits for it."""
    submit_us: float = 0.5
    """Submission of a read: about that of a user-level driver with 1 million reads a second."""
    collect_us: float = 0.5
    """Collecting a response."""
    poll_us: float = 0.1
    """Poll of an empty completion queue: some cache misses."""
    quantum_us: float = 3_000.0
    """Time for which one of two equals runs: the minimum granularity of Linux's fair scheduler on
    cores or more (0.75 ms, times 1 + log2 8)."""
    service_us: float = 1.0
    """Time that the remote side needs for a read from memory."""
    depth: int = 8
    """Reads in flight (section 6.1)."""


@dataclass(frozen=True)
class Network:
    """Latencies of commands and responses, and the bound of both together; NaN if there is none."""

    command_us: NDArray[np.float64]
    response_us: NDArray[np.float64]
    delay_bound_us: float = float("nan")

    @classmethod
    def of(cls, run: Run, command_bytes: int = 64, response_bytes: int = 4_096) -> Network:
        """Returns the latencies of the messages of these sizes from host 0 to host 1 and back."""
        table = run.columns("src", "dst", "size_bytes", "fct_ps", "delay_bound_ps")
        src, dst, size = (table[name].to_numpy() for name in ("src", "dst", "size_bytes"))
        took, bound = (
            table[name].to_numpy().astype(float) / 1e6 for name in ("fct_ps", "delay_bound_ps")
        )
        commands = (src == 0) & (dst == 1) & (size == command_bytes)
        responses = (src == 1) & (dst == 0) & (size == response_bytes)
        if not np.isfinite(took[commands | responses]).all():
            raise ValueError(f"{run.path}: expected every command and response to be delivered")
        both = bound[commands].max(initial=0.0) + bound[responses].max(initial=0.0)
        return cls(took[commands], took[responses], float(both))


@dataclass(frozen=True)
class PolicyResult:
    """Result of a policy."""

    latency_us: NDArray[np.float64]
    """From the start of each read's submission until it is collected."""
    spinner_share: float
    """The spinner's throughput on the shared core over its throughput alone."""
    elapsed_us: float

    @property
    def tail_us(self) -> float:
        """The 99.9th percentile of latency."""
        return float(np.percentile(self.latency_us, 99.9))

    @property
    def kiops(self) -> float:
        """Number of reads per millisecond."""
        return self.latency_us.size / self.elapsed_us * 1e3


def simulate(
    policy: Policy,
    network: Network,
    host: Host = Host(),
    *,
    threshold_us: float = 0.0,
    reads: int = 40_000,
    seed: int = 1,
) -> PolicyResult:
    """Runs a client until it has collected `reads` reads."""
    core = _Core(host, network, np.random.default_rng(seed))
    core.submit(host.depth)
    if policy == "predictable" and not np.isfinite(network.delay_bound_us):
        raise ValueError("predictable: expected a network with a bound, got none")
    while len(core.latencies) < reads:
        match policy:
            case "polling":
                core.poll_until(core.now + host.quantum_us)
            case "polling-fairshare":
                core.poll_until(core.now + host.quantum_us)
                core.yield_until(core.now + host.switch_us + host.quantum_us)
            case "interrupts" if core.first_arrival <= core.now:
                core.collect()
            case "interrupts":
                core.yield_until(core.first_arrival + threshold_us)
            case "predictable":
                # The timer is early by the wake-up time, so that the client runs when all responses
                # have arrived.
                core.yield_until(core.last_sent + core.promised_us - core.wake_us)
                core.collect()
    return PolicyResult(np.asarray(core.latencies), core.spun_us / core.now, core.now)


@dataclass
class _Core:
    """The core, with the client running on it."""

    host: Host
    network: Network
    rng: np.random.Generator
    now: float = 0.0
    spun_us: float = 0.0
    last_sent: float = 0.0
    latencies: list[float] = field(default_factory=list)
    under_way: list[tuple[float, float]] = field(default_factory=list)
    """The times at which each response arrives and its submission began; a heap."""
    drawn: list[float] = field(default_factory=list)

    @property
    def first_arrival(self) -> float:
        return self.under_way[0][0]

    @property
    def promised_us(self) -> float:
        return self.network.delay_bound_us + self.host.service_us

    @property
    def wake_us(self) -> float:
        return self.host.interrupt_us + self.host.switch_us

    def submit(self, reads: int) -> None:
        for _ in range(reads):
            began = self.now
            self.now += self.host.submit_us
            self.last_sent = self.now
            heappush(self.under_way, (self.now + self._latency(), began))

    def collect(self) -> None:
        """Collects the responses that have arrived, then submits as many reads."""
        there = sum(arrival <= self.now for arrival, _ in self.under_way)
        for _ in range(there):
            _, began = heappop(self.under_way)
            self.now += self.host.collect_us
            self.latencies.append(self.now - began)
        self.submit(there)

    def poll_until(self, instant: float) -> None:
        while self.now < instant:
            if self.first_arrival <= self.now:
                self.collect()
                continue
            polls = np.ceil((min(self.first_arrival, instant) - self.now) / self.host.poll_us)
            self.now += float(polls) * self.host.poll_us

    def yield_until(self, instant: float) -> None:
        """Yields to the spinner until an interrupt or a timer, and runs again."""
        self.now += self.host.switch_us
        fires = max(self.now, instant)
        self.spun_us += fires - self.now
        self.now = fires + self.wake_us

    def _latency(self) -> float:
        if not self.drawn:
            command = self.rng.choice(self.network.command_us, 4_096)
            response = self.rng.choice(self.network.response_us, 4_096)
            self.drawn = (command + response + self.host.service_us).tolist()
        return self.drawn.pop()
