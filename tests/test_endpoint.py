"""Transports in Python: run by the simulator, checked by its ledger."""

import textwrap
import time
from pathlib import Path
from typing import Any

import pytest

import rampmeter as rm
from rampmeter.endpoint import _module_of
from rampmeter.endpoints import StopAndWait
from rampmeter.running import runner

from .commands import call, ok

STAR = rm.star(4)


def run(endpoint: type[rm.Endpoint], sizes: dict[str, int] | str = "imc10", **parts: Any) -> rm.Run:
    workload = rm.all_to_all(sizes, load=0.3, flows=50)
    transport = endpoint.transport()
    return rm.run(topology=STAR, transport=transport, workload=workload, quiet=True, **parts)


class Blast(rm.Endpoint):
    """Sends every packet once; the receiver confirms the last one."""

    def __init__(self, host: rm.Host) -> None:
        super().__init__(host)
        self.waiting: list[tuple[int, int]] = []
        self.answers: list[rm.Packet] = []
        self.missing: dict[tuple[int, int], int] = {}

    def submit(self, now: int, message: rm.MessageToSend) -> None:
        self.waiting += [(message.id, index) for index in range(message.packets)]

    def on_packet(self, now: int, packet: rm.Packet) -> None:
        if packet.packets is None:
            self.host.complete(packet.message)
            return
        key = packet.src, packet.message
        self.missing[key] = self.missing.get(key, packet.packets) - packet.is_new
        if self.missing[key] == 0:
            self.answers.append(self.host.control(packet.src, packet.message))

    def poll_transmit(self, now: int) -> rm.Packet | None:
        if self.answers:
            return self.answers.pop()
        return self.host.data(*self.waiting.pop(0)) if self.waiting else None


def test_flows_of_one_packet_take_their_ideal_in_an_empty_network() -> None:
    """Theory: without queues the completion time is the transmission time of the packets."""
    flows = rm.flows({"arrival_us": [0, 50, 100], "src": [0, 1, 2], "dst": [1, 2, 3],
                      "size_bytes": [1460, 100, 14_600]})  # fmt: skip
    done = rm.run(topology=STAR, transport=Blast.transport(), workload=flows, quiet=True)
    assert done.flows["fct_ps"].to_pylist() == done.flows["ideal_ps"].to_pylist()
    assert done.flows["acked_ps"].to_pylist() == done.flows["acked_ideal_ps"].to_pylist()


def test_stop_and_wait_takes_a_round_trip_a_packet() -> None:
    """Theory: n packets need n - 1 round trips of packet and acknowledgement, and one more way."""
    n = 5
    flows = rm.flows({"arrival_us": [0], "src": [0], "dst": [1], "size_bytes": [n * 1460]})
    done = rm.run(topology=STAR, transport=StopAndWait.transport(), workload=flows, quiet=True)
    [fct], [acked] = (done.flows[name].to_pylist() for name in ("fct_ps", "acked_ps"))
    # Two links of 100 Gbit/s and 200 ns, 450 ns in the switch and at the receiver.
    data, control = (2 * (size * 80 + 200_000) + 900_000 for size in (1500, 40))
    assert fct == n * data + (n - 1) * control
    assert acked == n * (data + control)


def test_losses_are_made_up_for_and_a_seed_gives_the_same() -> None:
    """The second run passes every packet through its encoding."""
    faults = rm.Faults(loss=0.05, duplicate=0.02)
    options = [rm.RunOptions(paranoid=is_paranoid) for is_paranoid in (False, True)]
    one, other = (run(StopAndWait, faults=faults, run=how, seed=3) for how in options)
    assert one.summary["flows"]["delivered"] == 50
    assert any(one.flows["retransmitted_bytes"].to_pylist())
    assert one.flows.equals(other.flows)


def test_without_answers_messages_fail(tmp_path: Path) -> None:
    transport = StopAndWait.transport(timeout_us=20, attempts_max=3)
    done = rm.run(
        topology=STAR,
        transport=transport,
        workload=rm.imc10(0.3, 20),
        faults=rm.Faults(loss=1.0),
        quiet=True,
    )
    assert done.summary["flows"]["failed"] == 20
    # The first transmission and three more, each with its timeout, and the flows that wait.
    fates: list[Any] = done.flows["outcome_ps"].to_pylist()
    assert min(fates) >= 4 * 20_000_000


def test_an_endpoint_has_the_facts_of_the_network() -> None:
    seen: dict[int, rm.Host] = {}

    class Curious(Blast):
        def __init__(self, host: rm.Host) -> None:
            super().__init__(host)
            seen[host.node] = host

    done = run(Curious)
    derived = done.manifest["derived"]
    host = seen[3]
    assert sorted(seen) == [0, 1, 2, 3]
    assert (host.n_hosts, host.gbps, host.payload_bytes, host.header_bytes) == (4, 100, 1460, 40)
    assert host.transmission(1500) == 120_000
    assert (host.rtt, host.control_rtt) == tuple(
        round(1e6 * derived[name]) for name in ("data-rtt-us", "control-rtt-us")
    )
    assert len({host.seed for host in seen.values()}) == 4


class Broken(Blast):
    """An endpoint with one mistake, which subclasses define."""


class Raises(Broken):
    def on_packet(self, now: int, packet: rm.Packet) -> None:
        raise KeyError("no such thing")


class TooEarly(Broken):
    """Treats the first packet of a message as all of it."""

    def on_packet(self, now: int, packet: rm.Packet) -> None:
        if packet.packets is None:
            super().on_packet(now, packet)
        else:
            self.answers.append(self.host.control(packet.src, packet.message))


class NoPacket(Broken):
    def poll_transmit(self, now: int) -> Any:
        return 7


class WrongIndex(Broken):
    def submit(self, now: int, message: rm.MessageToSend) -> None:
        self.host.data(message.id, message.packets)


class Foreign(Broken):
    def on_packet(self, now: int, packet: rm.Packet) -> None:
        self.host.fail(packet.message)


class ToItself(Broken):
    def submit(self, now: int, message: rm.MessageToSend) -> None:
        self.host.control(self.host.node, message.id)


class ManyWords(Broken):
    def submit(self, now: int, message: rm.MessageToSend) -> None:
        self.host.control(message.dst, message.id, words=[1, 2, 3, 4])


class NegativeWord(Broken):
    def submit(self, now: int, message: rm.MessageToSend) -> None:
        self.host.control(message.dst, message.id, words=[-1])


class NoClass(Broken):
    def submit(self, now: int, message: rm.MessageToSend) -> None:
        self.host.data(message.id, 0, priority=8)


class Restless(Broken):
    """Sets its deadline to the present time."""

    def submit(self, now: int, message: rm.MessageToSend) -> None:
        self.deadline = 0

    def on_timeout(self, now: int) -> None:
        self.deadline = now


class Circling(Broken):
    def on_packet(self, now: int, packet: rm.Packet) -> None:
        self.is_circling = True

    def poll_transmit(self, now: int) -> rm.Packet | None:
        if getattr(self, "is_circling", False):
            self.deadline = now
            return None
        return super().poll_transmit(now)


class BadDeadline(Broken):
    def submit(self, now: int, message: rm.MessageToSend) -> None:
        self.deadline = "soon"  # type: ignore[assignment]


@pytest.mark.parametrize(
    ("endpoint", "cause", "message"),
    [
        (Raises, KeyError, r"host \d: on_packet at .* us: KeyError: 'no such thing'"),
        (NoPacket, TypeError, "poll_transmit: expected a Packet or None, got .*int"),
        (WrongIndex, ValueError, r"submit at .* index: expected 0 to \d+, got \d+"),
        (Foreign, ValueError, "expected a message that this host sends and that is neither"),
        (ToItself, ValueError, r"dst: expected a host below 4 other than \d, got \d"),
        (ManyWords, ValueError, "words: expected at most 3, got 4"),
        (NegativeWord, ValueError, r"words: expected 0 to 2\^64 - 1, got -1"),
        (NoClass, ValueError, r"priority: expected 0 \(the highest\) to 7, got 8"),
        (
            BadDeadline,
            ValueError,
            r"submit at .* deadline: expected None or whole picoseconds .* soon",
        ),
        (Circling, RuntimeError, r"expected this instant to end, got 100000 calls"),
        (Restless, ValueError, r"on_timeout at .* deadline: expected a time after"),
    ],
)
def test_a_mistake_ends_the_run_with_its_place(
    endpoint: type[Broken], cause: type[Exception], message: str
) -> None:
    with pytest.raises(rm.EndpointError, match=message) as caught:
        run(endpoint, seed=5)
    assert isinstance(caught.value.__cause__, cause)
    assert "with seed 5" in str(caught.value)
    # The failure does not affect the next run.
    assert run(Blast, {"fixed": 1000}).status == "finished"


def test_the_ledger_detects_early_completions() -> None:
    with pytest.raises(rm.EndpointError, match=r"the ledger found: .*Completed.* out of turn"):
        run(TooEarly, sizes={"fixed": 1_000_000})


FILE = """\
    import rampmeter as rm
    from rampmeter.endpoints import StopAndWait

    class Patient(StopAndWait):
        def __init__(self, host: rm.Host, more: float = 1.0) -> None:
            super().__init__(host)
            self.timeout = int(self.timeout * more)
"""
PLAN = """\
    [topology]
    kind = "star"
    hosts = 4
    [transport]
    name = "python"
    file = "patient.py"
    endpoint = "Patient"
    [transport.parameters]
    more = 2.0
    [workload]
    pattern = "all-to-all"
    sizes = "imc10"
    load = 0.3
    flows = 50
    [faults]
    loss = 0.05
"""


@pytest.fixture
def plan(tmp_path: Path) -> Path:
    (tmp_path / "patient.py").write_text(textwrap.dedent(FILE))
    file = tmp_path / "plan.toml"
    file.write_text(textwrap.dedent(PLAN))
    return file


class TestPlans:
    """A class in a file next to the plan, and parameters in the plan."""

    def test_the_command_runs_it_and_its_manifest(self, plan: Path, tmp_path: Path) -> None:
        for source, out in ((plan, "out"), (tmp_path / "out/manifest.json", "again")):
            argv = ["run", str(source), "--out", str(tmp_path / out), "--quiet"]
            ok(*argv)
        one, again = (rm.Run(tmp_path / name).flows for name in ("out", "again"))
        assert one.equals(again)

    def test_parameters_are_swept(self, plan: Path, tmp_path: Path) -> None:
        vary = {"transport.parameters.more": [0.5, 4.0]}
        swept = rm.sweep(plan, vary=vary, out=tmp_path / "sweep", quiet=True).table
        means: list[Any] = swept.sort_by("transport.parameters.more")["slowdown_mean"].to_pylist()
        assert means[0] < means[1]

    def test_another_text_of_the_class_is_another_run(self, plan: Path, tmp_path: Path) -> None:
        before = rm.run(plan, out=tmp_path / "out", quiet=True).summary["slowdown"]
        (tmp_path / "patient.py").write_text(textwrap.dedent(FILE.replace("* more", "* 3 * more")))
        with pytest.raises(rm.ResultError, match="another plan"):
            rm.run(plan, out=tmp_path / "out", quiet=True)
        after = rm.run(plan, out=tmp_path / "out", force=True, quiet=True).summary["slowdown"]
        assert before != after

    @pytest.mark.parametrize(
        ("right", "wrong", "message"),
        [
            (
                "patient.py",
                "nobody.py",
                r"transport.endpoint: expected a class of nobody.py .*no su",
            ),
            ('"Patient"', '"Nobody"', "has no attribute 'Nobody'"),
            ('"Patient"', '"rm"', "expected a subclass of Endpoint"),
            ('"patient.py"', '"patient.py"\nmodule = "x"', "expected either file or module, got"),
            ("more = 2.0", "less = 2.0", "and its parameters, got .*argument 'less'"),
        ],
    )
    def test_bad_ones_are_refused(self, right: str, wrong: str, message: str, plan: Path) -> None:
        plan.write_text(textwrap.dedent(PLAN.replace(right, wrong)))
        with pytest.raises(rm.PlanError, match=message):
            rm.Plan.load(plan).check()

    def test_a_mistake_in_the_class_is_shown_by_the_command(
        self, plan: Path, tmp_path: Path
    ) -> None:
        text = textwrap.dedent(FILE) + "\n    def submit(self, now, message):\n        oops\n"
        (tmp_path / "patient.py").write_text(text)
        done = call("run", plan, "--out", tmp_path / "o", "--quiet")
        assert done.exit_code == 2
        assert "NameError: name 'oops' is not defined" in done.output
        assert 'patient.py", line' in done.output
        assert not list((tmp_path / "o").glob("*.partial"))

    def test_a_class_without_a_method_is_refused(self, plan: Path, tmp_path: Path) -> None:
        (tmp_path / "patient.py").write_text(
            "import rampmeter as rm\nclass Patient(rm.Endpoint): pass"
        )
        with pytest.raises(
            rm.PlanError, match="expected the methods on_packet, poll_transmit, sub"
        ):
            rm.Plan.load(plan).check()


def test_an_endpoint_runs_with_other_transports(tmp_path: Path) -> None:
    base = rm.Plan.of(topology=STAR, transport=rm.DcPim(), workload=rm.imc10(0.3, 50))
    choices = [rm.DcPim(), StopAndWait.transport(timeout_us=50)]
    compared = rm.compare(base, choices, out=tmp_path / "c", quiet=True)
    assert list(compared.runs) == ["dcpim", "StopAndWait:timeout-us=50"]


class Hanging(Broken):
    def submit(self, now: int, message: rm.MessageToSend) -> None:
        while True:
            pass


def test_a_class_that_hangs_ends_some_seconds_after_its_run(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(runner, "PATIENCE_SECONDS", 0.5)
    with pytest.raises(TimeoutError):
        run(Hanging, timeout=0.1)
    assert run(Blast).status == "finished"


def test_a_class_of_endpoints_is_a_transport() -> None:
    done = rm.run(topology=STAR, transport=Blast, workload=rm.imc10(0.3, 5), quiet=True)
    assert done.manifest["plan"]["transport"]["endpoint"].startswith("Blast")


def test_a_changed_class_of_a_notebook_is_rerun(tmp_path: Path) -> None:
    """Also where two classes of one name are used by turns."""
    slowdowns = []
    for times in (1, 4, 4):
        names: dict[str, Any] = {"rm": rm, "StopAndWait": StopAndWait, "__name__": "__main__"}
        text = f"""
class Late(StopAndWait):
    def __init__(self, host):
        super().__init__(host, timeout_us={times * 20})
"""
        exec(text, names)
        done = rm.run(
            topology=STAR,
            transport=names["Late"].transport(),
            workload=rm.imc10(0.3, 50),
            faults=rm.Faults(loss=0.05),
            out=tmp_path / "out",
            force=True,
            quiet=True,
        )
        slowdowns.append(done.flows["fct_ps"].to_pylist())
    assert slowdowns[0] != slowdowns[1] == slowdowns[2]


def test_files_next_to_an_endpoint_are_imported_and_identified(plan: Path, tmp_path: Path) -> None:
    (tmp_path / "patient.py").write_text(
        "import helper\n" + textwrap.dedent(FILE).replace("* more", "* more * helper.TIMES")
    )
    fcts = []
    for times in (1, 5):
        (tmp_path / "helper.py").write_text(f"TIMES = {times}\n")
        done = rm.run(plan, out=tmp_path / "out", force=True, quiet=True)
        fcts.append(done.flows["fct_ps"].to_pylist())
    assert fcts[0] != fcts[1]
    (tmp_path / "helper.py").write_text("TIMES = 6\n")
    with pytest.raises(rm.PlanError, match=r"helper\.py has changed since the run"):
        rm.Plan.load(tmp_path / "out/manifest.json")


def test_files_next_to_endpoints_in_two_folders_may_have_one_name(tmp_path: Path) -> None:
    for times in (1, 9):
        folder = tmp_path / str(times)
        folder.mkdir()
        (folder / "helper.py").write_text(f"TIMES = {times}\n")
        (folder / "mine.py").write_text(
            "import helper\n" + textwrap.dedent(FILE).replace("* more", "* helper.TIMES")
        )
    files = [tmp_path / folder / "mine.py" for folder in ("1", "9", "1")]
    assert [_module_of(file).helper.TIMES for file in files] == [1, 9, 1]


def test_classes_of_one_name_are_distinguished() -> None:
    def make(times: int) -> type[StopAndWait]:
        class Late(StopAndWait):
            def __init__(self, host: rm.Host) -> None:
                super().__init__(host, timeout_us=times * 20)

        return Late

    hasty, patient = make(1).transport(), make(9).transport()
    assert hasty != patient
    fcts = [
        rm.run(
            topology=STAR,
            transport=transport,
            workload=rm.imc10(0.3, 50),
            faults=rm.Faults(loss=0.05),
            quiet=True,
        ).flows["fct_ps"]
        for transport in (hasty, patient, hasty, make(1).transport())
    ]
    assert fcts[0] == fcts[2] == fcts[3] != fcts[1]


def test_a_module_that_changes_is_another_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "pack").mkdir()
    (tmp_path / "pack/__init__.py").touch()
    file = tmp_path / "pack/mine.py"
    file.write_text(textwrap.dedent(FILE))
    monkeypatch.syspath_prepend(tmp_path)
    transport = rm.Python(module="pack.mine", endpoint="Patient")
    plan = rm.Plan.of(topology=STAR, transport=transport, workload=rm.imc10(0.3, 20))
    rm.run(plan, out=tmp_path / "out", quiet=True)
    file.write_text(textwrap.dedent(FILE) + "# changed\n")
    with pytest.raises(rm.ResultError, match=r"mine\.py has changed"):
        rm.run(plan, out=tmp_path / "out", quiet=True)


def test_a_file_that_runs_itself_is_refused(plan: Path, tmp_path: Path) -> None:
    text = textwrap.dedent(FILE) + "\n\nrm.run('plan.toml', quiet=True)\n"
    (tmp_path / "patient.py").write_text(text.replace("plan.toml", str(plan)))
    with pytest.raises(rm.PlanError, match="starts a run while it is imported"):
        rm.Plan.load(plan).check()


def test_a_slow_class_is_stopped_in_time() -> None:
    class Slow(Blast):
        def submit(self, now: int, message: rm.MessageToSend) -> None:
            time.sleep(0.05)

    start = time.monotonic()
    with pytest.raises(TimeoutError):
        run(Slow, timeout=0.3)
    assert time.monotonic() - start < 2.0
