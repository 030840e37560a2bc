"""The private extension module: conversions and errors around the simulator, nothing else."""

from collections.abc import Callable, Sequence
from os import PathLike
from typing import Final, TypedDict, final, type_check_only

__all__ = [
    "COMMIT",
    "PROFILE",
    "VERSION",
    "WARNINGS",
    "AttachError",
    "EndpointError",
    "Finished",
    "FullError",
    "Host",
    "InternalError",
    "Message",
    "MessageToSend",
    "NodeGoneError",
    "Packet",
    "PlanError",
    "Port",
    "ResultError",
    "bench",
    "check",
    "convert",
    "cosy_delta",
    "cosy_limits",
    "cosy_queues",
    "cosy_share",
    "cosy_slots_max",
    "derived",
    "distribution_mean",
    "distribution_points",
    "distributions",
    "drawing",
    "every_packet",
    "homa_priorities",
    "host_packet",
    "migrate",
    "offered",
    "plan_schema",
    "quantity",
    "run",
    "statistics",
    "student_t",
    "testbed_collect",
    "testbed_prepare",
    "transports",
    "warnings",
]

VERSION: Final[str]
"""The version of the simulator."""
COMMIT: Final[str]
"""The git commit that the module was built from, or `unknown`."""
PROFILE: Final[str]
"""The build profile, such as `release`."""
WARNINGS: Final[dict[str, list[str]]]
"""The codes of all warnings of plans and runs, with the names of their values."""

@type_check_only
class _LocatedError:
    """Attributes of errors of input. Those that an error does not have are `None`."""

    code: str | None
    """`"plan-syntax"`, `"plan-value"` for an impossible value, or `"plan-file"`; `"bad-results"`
    for results."""
    file: str | None
    """The file or folder, or another name of the plan."""
    key: str | None
    """The path to the key, such as `"workload.load"`, or an option or argument; empty if the whole
    file is wrong."""
    problem: str | None
    """The message without file, line and key."""
    expected: str | None
    """The values that are allowed."""
    got: str | None
    """The value that is there."""
    line: int | None
    """The line in the file, from 1."""
    column: int | None
    """The column in the line, from 1."""
    data_file: str | None
    """Another file that the plan names, if the mistake is in it."""
    data_line: int | None
    """The line or row in that file, from 1."""
    _source: str | None
    _name: str | None
    _names: list[str] | None
    _missing: str | None
    _before: str | None
    _after: str | None

class PlanError(_LocatedError, ValueError):
    """A plan, another input file, an option or an argument that cannot be used.

    The message is made of the attributes.
    """

class ResultError(_LocatedError, OSError):
    """Results that cannot be read or written, or that are those of another plan."""

class InternalError(Exception):
    """A violated invariant of the simulator, with its place and seed. No mistake of a plan."""

    code: str
    """`"simulator-fault"`."""

class EndpointError(Exception):
    """A Python endpoint raised an exception, which is the cause; or it violated the ledger, for
    example by completing a message before its delivery."""

    code: str
    """`"endpoint-fault"`."""

@final
class MessageToSend:
    """A message that an endpoint is to send."""

    @property
    def id(self) -> int:
        """Its number, which packets and completions carry."""
    @property
    def dst(self) -> int:
        """The receiving host."""
    @property
    def size(self) -> int:
        """Its length in bytes."""
    @property
    def packets(self) -> int:
        """The packets of the message, numbered from 0."""
    @property
    def tenant(self) -> int:
        """The tenant that it belongs to; 0 if the workload names none."""

@final
class Packet:
    """A packet for endpoints. `Host.data` and `Host.control` make those that are sent."""

    @property
    def src(self) -> int:
        """The sending host."""
    @property
    def dst(self) -> int:
        """The receiving host."""
    @property
    def message(self) -> int:
        """The message that it belongs to, in the numbers of the message's sender."""
    @property
    def index(self) -> int | None:
        """Its number in the message; `None` for one without payload."""
    @property
    def packets(self) -> int | None:
        """Packets of the message; `None` for one without payload."""
    @property
    def words(self) -> list[int]:
        """Three numbers of 64 bits that the endpoint chose."""
    @property
    def priority(self) -> int:
        """The class in which ports queue it: 0, the highest, to 7."""
    @property
    def is_new(self) -> bool:
        """True if its payload had not arrived before."""
    @property
    def is_marked(self) -> bool:
        """True if a queue on its path was above `fabric.ecn-bytes`."""

@final
class Host:
    """A host for its endpoint. Times are in picoseconds."""

    @property
    def node(self) -> int:
        """The number of this host, from 0."""
    @property
    def seed(self) -> int:
        """A separate seed of this host, for random decisions."""
    @property
    def n_hosts(self) -> int:
        """The hosts of the network."""
    @property
    def gbps(self) -> float:
        """Rate of the slowest host link in Gbit/s."""
    @property
    def rtt(self) -> int:
        """Unloaded round trip with a full packet each way on the longest path."""
    @property
    def control_rtt(self) -> int:
        """The same with control packets."""
    @property
    def payload_bytes(self) -> int:
        """Payload of a full packet."""
    @property
    def header_bytes(self) -> int:
        """Bytes of headers charged to each packet, and the length of a control packet."""
    def transmission(self, size: int) -> int:
        """Returns the serialisation time of `size` bytes on the slowest host link."""
    def data(
        self, message: int, index: int, *, words: Sequence[int] = ..., priority: int = 1
    ) -> Packet:
        """Makes packet number `index` of a message of this host that has not ended.

        Raises `ValueError` for another message, an invalid number or priority, or more than three
        words.
        """
    def control(
        self, dst: int, message: int, *, words: Sequence[int] = ..., priority: int = 0
    ) -> Packet:
        """Makes a packet without payload to another host, about a message of either; see `data`."""
    def complete(self, message: int) -> None:
        """Completes a message of this host, which the receiver has acknowledged.

        Raises `ValueError` for a message that has ended. The run ends with `EndpointError` if not
        all of its packets have arrived.
        """
    def fail(self, message: int) -> None:
        """Aborts a message of this host. Raises `ValueError` for one that has ended."""

class AttachError(OSError):
    """There is no node at a socket, or it refuses the program; the text has the reason."""

    code: str
    """`"no-node"`."""

class NodeGoneError(OSError):
    """The node has died or has disconnected the application, and everything has been reported."""

    code: str
    """`"node-gone"`."""

class FullError(OSError):
    """The maximum number of messages or bytes is in flight: take completions, then retry."""

    code: str
    """`"full-window"`."""

@final
class Finished:
    """The outcome of a message that was sent."""

    @property
    def ticket(self) -> int:
        """The message."""
    @property
    def failure(self) -> str | None:
        """Reason of its failure, such as `refused`; `None` if the receiver has it."""

@final
class Message:
    """A message that has arrived. It occupies memory of the port until it is deleted."""

    @property
    def source(self) -> int:
        """The sending node."""
    @property
    def uid(self) -> int | None:
        """The user of the sending program; `None` if that is not on the same node."""
    @property
    def data(self) -> bytes:
        """A copy of its bytes."""
    def __len__(self) -> int: ...

@final
class Port:
    """An application's access to the node of its machine, for one service."""

    @staticmethod
    def attach(
        path: str | PathLike[str], service: int, *, depth: int, send: int, receive: int
    ) -> Port:
        """Attaches to the node whose socket is at `path`."""
    def submit(
        self,
        dst: int,
        service: int,
        data: bytes | bytearray | memoryview,
        *,
        deadline: float | None = None,
        tenant: int = 0,
    ) -> tuple[int, float | None]:
        """Submits a copy of `data`. Returns its ticket, and its bound in seconds or `None`."""
    def bound(self, size: int, *, tenant: int = 0) -> float | None:
        """Returns the bound of a message of `size` bytes in seconds, or `None` if it has none."""
    def wait(self, timeout: float | None = None) -> Finished | Message | None:
        """Returns the next completion, after at most `timeout` seconds, or `None`.

        The interpreter lock is released meanwhile; signals are handled.
        """
    def try_next(self) -> Finished | Message | None:
        """Returns the next completion, if there is one."""
    def set_busy_poll(self, most: float) -> None:
        """Sets the maximum time, in seconds, for which waiting threads poll before they sleep."""
    def arm(self) -> bool:
        """Requests that `fileno` becomes readable at the next completion; true if there is one."""
    def fileno(self) -> int:
        """Returns a descriptor for event loops."""
    def close(self) -> None:
        """Closes the port and frees its service."""

@type_check_only
class Progress(TypedDict):
    """The progress of a run."""

    submitted: int
    delivered: int
    total: int | None
    now_ps: int
    hops: int
    events: int

def run(
    plan: str,
    base: str,
    out: str | PathLike[str],
    progress: Callable[[Progress], bool] | None = None,
    default_threads: int = 1,
) -> str:
    """Runs a plan (TOML text), writes results to the folder `out`; returns the summary as JSON.

    Relative files of the plan are relative to `base`. `progress` is called about five times a
    second; when it returns false the run ends with the status `interrupted` and keeps finished
    output. The interpreter lock is released meanwhile. A long run whose plan has no `run.threads`
    uses `default_threads`.
    """

def check(plan: str, base: str) -> str:
    """Checks a plan; returns it with every default as JSON."""

def migrate(text: str, name: str) -> tuple[str, list[tuple[int, str, str]]]:
    """Returns the text of a file with the present keys; line, former, present of each renamed."""

def bench(plan: str, base: str) -> str:
    """Runs a plan without writing anything; returns its speed as JSON."""

def host_packet(mtu: int) -> tuple[int, int]:
    """Returns the payload of a full packet between hosts, and the other bytes of the link it
    takes."""

def quantity(text: str, unit: str) -> float | None:
    """Returns the number in a unit such as `us` or `bytes` of a text with a unit, such as `5ms`."""

def student_t(freedom: int, level: float) -> float:
    """Returns the two-sided quantile of Student's t at a confidence level between 0 and 1."""

def cosy_share(slots: int, cores: int) -> float:
    """Returns the share of the best sustainable load that cosy sustains in expectation."""

def cosy_limits(rtt_ps: int, size_bytes: int, rate_bps: int) -> tuple[int, float]:
    """Returns the best delay bound (ps) and the best sustainable load of any design."""

def cosy_queues(
    switches: int, slots: int, ratio: int, packet_bytes: int, rate_bps: int
) -> tuple[int, int]:
    """Returns cosy's longest queue (bytes) and the longest time that a packet is queued (ps)."""

def cosy_delta(rtt_ps: int, size_bytes: int, rate_bps: int, slots: int, queueing_ps: int) -> int:
    """Returns cosy's delay bound (ps)."""

def cosy_slots_max(buffer_bytes: int, switches: int, packet_bytes: int) -> int:
    """Returns the virtual links up to which queues fit into a buffer."""

def testbed_prepare(plan: str, base: str, table: str | PathLike[str]) -> str:
    """Writes a plan's flows for hosts to send; returns the facts for a run on hosts as JSON."""

def testbed_collect(
    plan: str,
    base: str,
    logs: Sequence[str | PathLike[str]],
    wall_seconds: float,
    out: str | PathLike[str],
) -> str:
    """Makes results of the logs of hosts in the folder `out`; returns the summary as JSON."""

def convert(
    source: str | PathLike[str],
    format: str,
    target: str | PathLike[str],
    sort: bool = False,
    topology: str | PathLike[str] | None = None,
    vector_bytes: int | None = None,
    groups: str | PathLike[str] | None = None,
    columns: dict[str, str] | None = None,
) -> tuple[int, list[str]]:
    """Converts a trace or a topology of another tool, or of another form, to one of ours.

    Returns the number of its flows or links, and notes about omitted parts.
    """

def every_packet(file: str | PathLike[str]) -> str:
    """Writes a capture (pcapng) of one packet of every type; returns the fields of each as JSON.

    A list of objects, whose keys are the names of fields in `wireshark/rampmeter.lua`.
    """

def transports() -> str:
    """Returns the transports that plans may name, with their keys, as JSON."""

def plan_schema() -> str:
    """Returns the JSON Schema of plans."""

def derived(plan: str, base: str) -> str:
    """Returns the values derived from a plan and its network as JSON: names end in their units."""

def offered(plan: str, base: str) -> str:
    """Returns the traffic that a plan's workload offers to each tier of links, as JSON."""

def drawing(plan: str, base: str) -> str:
    """Returns nodes and links of the network of a plan, as JSON."""

def warnings(plan: str, base: str) -> list[tuple[str, str, str]]:
    """Returns the warnings about likely mistakes in a plan: the code and the text of each, and its
    values as JSON."""

def statistics(values: bytes, in_order: bool = False) -> dict[str, float] | None:
    """Returns the statistics of doubles in native order, as in summaries; `None` without values.

    In the order of arrival of one steady process they have intervals, `mean_ci` and so on.
    """

def homa_priorities(
    sizes: str, base: str | PathLike[str], payload: int, rtt_bytes: float, priorities: int
) -> tuple[int, list[int]]:
    """Returns Homa's priorities for a distribution: JSON of a plan's `sizes`.

    Packets of files have `payload` bytes, and their names are relative to `base`. `priorities` is
    at most 8. The first number is that of priorities for unscheduled packets, of which a message
    has at most `rtt_bytes`. Then follow the sizes up to which messages have the first, second, ...
    of these.
    """

def distributions() -> list[str]:
    """The names of the published size distributions."""

def distribution_mean(name: str) -> float:
    """The mean of a published size distribution in bytes."""

def distribution_points(
    sizes: str, base: str | PathLike[str], payload: int
) -> tuple[list[tuple[float, float]], bool]:
    """Returns the points of a distribution: JSON of a plan's `sizes`.

    The points are sizes in bytes and the probability of a size at most that. The last value is true
    if sizes between them occur, as if on a line. Packets of files have `payload` bytes, and their
    names are relative to `base`.
    """
