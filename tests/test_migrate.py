"""`rampmeter migrate` and errors of renamed keys."""

import json
from pathlib import Path

import pytest

import rampmeter as rm
from rampmeter import PlanError, _core
from rampmeter.plan.migration import migrate

from .commands import error_line, ok

FORMER = """\
seed = 1
[topology.star] # a comment is kept
hosts = 4
[transport]
name = "pfabric"
rto-ns = 45_000 # ns
[sweep.grid]
"transport.rto-ns" = [9500, 10_000]
[run]
"""


def printed(*arguments: object) -> str:
    """Returns the output of the command."""
    return ok("migrate", *arguments).stdout


RENAMED = [
    ("transport.rto-ns = 45_000", "transport.rto-us = 45"),
    ("[transport]\nrto-ns=9500", "[transport]\nrto-us=9.5"),
    ("transport = { rto-ns = 1e3 }", "transport = { rto-us = 1 }"),
    ("transport.rto-ns = 0x10", "transport.rto-us = 0.016"),
    ("transport.rto-ns = 1.5e9", "transport.rto-us = 1500000"),
    ("transport.rto-ns = 0", "transport.rto-us = 0"),
    ("[transport]\nrto-ns = '1.1us'", "[transport]\nrto-us = '1.1us'"),
    ('[transport]\nrto-ns = "9.5 us"', '[transport]\nrto-us = "9.5 us"'),
    ('[transport]\npace-percent = "99 %"', '[transport]\ncredit-rate = "99 %"'),
    ("[transport]\npace-percent = 99", "[transport]\ncredit-rate = 0.99"),
    ("[transport]\nrack-quarters = 17", "[transport]\nreordering-window-rtts = 4.25"),
    ("[transport]\nclock-ppb = 50_000", "[transport]\nclock-drift-ppm = 50"),
    (
        '[sweep.grid]\n"transport.rto-ns" = [9500, 10_000]',
        '[sweep.grid]\n"transport.rto-us" = [9.5, 10]',
    ),
    (
        'sweep.grid."transport.rto-ns" = "1000..3000:500"',
        'sweep.grid."transport.rto-us" = "1..3:0.5"',
    ),
    (
        "[sweep.grid]\n'transport.rto-ns' = [45_000, # 1\n 90_000] # 2",
        "[sweep.grid]\n'transport.rto-us' = [45, # 1\n 90] # 2",
    ),
    (
        "[sweep.sample.axes]\n'transport.rto-ns' = { uniform = [1, 2000] }",
        "[sweep.sample.axes]\n'transport.rto-us' = { uniform = [0.001, 2] }",
    ),
    ("[sweep.grid]\n'run.trace' = ['a']", "[sweep.grid]\n'run.timeline' = ['a']"),
    (
        "sweep.transports = [{ name = 'tcp', rto-ns = 1000 }]",
        "sweep.transports = [{ name = 'tcp', rto-us = 1 }]",
    ),
    ("[transport]\nname = 'hpcc'\nflows = 10", "[transport]\nname = 'hpcc'\nflows-per-link = 10"),
    ("[[transport]]\nmode = 'rpc'", "[[transport]]\nexchange = 'rpc'"),
    (
        "sweep.grid = { transport.queue = [9] }",
        "sweep.grid = { transport.switch-queue-packets = [9] }",
    ),
    ("[sweep.grid]\n'transport.wake' = []", "[sweep.grid]\n'transport.wake-event' = []"),
    ("[[runs]]\n'transport[1].shares' = 1", "[[runs]]\n'transport[1].link-sharing' = 1"),
    (
        "[sweep.grid]\n'transport.rto-ns' = '45000..180000*2'",
        "[sweep.grid]\n'transport.rto-us' = \"45..180*2\"",
    ),
    (
        "[sweep.grid]\n'transport.pace-percent' = '10..100'",
        "[sweep.grid]\n'transport.credit-rate' = \"0.1..1:0.01\"",
    ),
    (
        "[sweep.grid]\n'transport.rto-ns' = '1000,2000..4000:500'",
        "[sweep.grid]\n'transport.rto-us' = \"1,2..4:0.5\"",
    ),
    (
        "[sweep.sample.axes]\n'transport.rto-ns' = 'log-uniform(1000,1e6)'",
        "[sweep.sample.axes]\n'transport.rto-us' = \"log-uniform(1, 1000)\"",
    ),
    (
        "[sweep]\ntransports = ['hpcc:flows=50', 'dcpim']",
        "[sweep]\ntransports = ['hpcc:flows-per-link=50', 'dcpim']",
    ),
    (
        "[sweep]\ntransports = 'pfabric:paper,rto-ns=45000,fabric.slot-bytes=9'",
        "[sweep]\ntransports = 'pfabric:paper,rto-us=45,fabric.buffer-cell-bytes=9'",
    ),
    ("[fabric]\nslot-bytes = 9", "[fabric]\nbuffer-cell-bytes = 9"),
    ("run.trace = 'a'\nrun.trace-hosts = [1]", "run.timeline = 'a'\nrun.timeline-hosts = [1]"),
    ("run = { trace = 'a', links = true }", "run = { timeline = 'a', links = true }"),
    ("[run]\ntrace = 'a'\n[x]\ntrace = 1", "[run]\ntimeline = 'a'\n[x]\ntrace = 1"),
    ("[run]\n'trace-events' = 9", "[run]\n'timeline-events' = 9"),
    ('[run]\n"tr\\u0061ce" = 9', '[run]\n"timeline" = 9'),
    ("run.\"trace\" = 'a'", "run.\"timeline\" = 'a'"),
    ("\"run\" . 'trace' = 'a'", "\"run\" . 'timeline' = 'a'"),
    ("[\"run\"]\ntrace = 'a'", "[\"run\"]\ntimeline = 'a'"),
    ("node.gather-us = 20", "node.coalesce-us = 20"),
    (
        "node = { gather-us = 20 }\npeer = [{ id = 0 }]",
        "node = { coalesce-us = 20 }\npeer = [{ id = 0 }]",
    ),
    ('[network]\nspray = 4\n[["peer"]]\nid = 0', '[network]\nspray-ports = 4\n[["peer"]]\nid = 0'),
]
KEPT = [
    '[run]\ntimeline = \'rto-ns = 500\'\nnote = """\ntrace = 5\nrun.trace = 5\n"""',
    "file = 'rto-ns/x.py'\n# rto-ns = 5\n",
    "[transport.parameters]\nrto-ns = 9",
    "[workload]\nflows = 9\n[topology]\nports = 1\n[fabric.x]\nmode = 'off'\n[run]\nqueue = 1",
    "[workload]\ntrace = 1\n[run]\ntraces = 2",
    "[run]\n[\"a\".'b']\ntrace = 1",
    "[transport]\nmacro-rto-ns = 1\nrto-ns-x = 2",
    '[fabric]\nspray = "random"\n[network]\nspray = 4',
    # Only some transports had these keys, and the text names none.
    "[sweep.grid]\n'transport.model' = [1]\n'transport.ports' = [2]\n'transport.network' = [3]",
]


def migrated(folder: Path, text: str) -> str:
    """Returns a text with the present keys."""
    file = folder / "plan.toml"
    file.write_bytes(text.encode())
    return migrate(file)[0]


@pytest.mark.parametrize(("old", "new"), RENAMED)
def test_a_former_key_gets_its_present_name_and_unit(old: str, new: str, tmp_path: Path) -> None:
    assert migrated(tmp_path, old) == new
    assert migrated(tmp_path, f"\ufeff{old}\r\n") == f"\ufeff{new}\r\n"
    assert migrated(tmp_path, new) == new


@pytest.mark.parametrize("text", KEPT)
def test_all_other_text_is_kept(text: str, tmp_path: Path) -> None:
    assert migrated(tmp_path, text) == text


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("[run]\ntrace = 1\ntimeline = 2", "line 2, column 1: run.trace: expected one of the keys"),
        (
            "[sweep.grid]\n'transport.rto-us' = [1]\n'transport.rto-ns' = [1]",
            "expected one of the keys `transport.rto-ns` and `transport.rto-us`, got both",
        ),
        ("rampmeter run --set run.trace=a", "line 1, column 11: "),
    ],
)
def test_a_text_that_cannot_be_migrated_is_an_error(text: str, error: str, tmp_path: Path) -> None:
    good, bad = tmp_path / "a.toml", tmp_path / "b.toml"
    good.write_text("run.trace = 'a'")
    bad.write_text(text)
    done = error_line("migrate", bad, good)
    assert f"{bad}: " in done
    assert error in done
    assert "[plan-syntax]" in done
    assert (good.read_text(), bad.read_text()) == ("run.trace = 'a'", text)


def test_a_migrated_plan_is_accepted_and_keeps_the_rest(tmp_path: Path) -> None:
    plan = tmp_path / "plan.toml"
    plan.write_bytes(FORMER.replace("\n", "\r\n").encode())
    assert printed(plan, "--dry-run").splitlines() == [
        f"{plan}:6: rto-ns = 45_000 -> rto-us = 45",
        f"{plan}:8: rto-ns -> rto-us",
    ]
    assert b"rto-ns" in plan.read_bytes()
    changes = json.loads(printed(plan, "--json"))
    assert changes["written"]
    assert [change["line"] for change in changes["changes"]] == [6, 8]
    text = plan.read_bytes().decode()
    assert text == (
        FORMER.replace("rto-ns = 45_000", "rto-us = 45")
        .replace('rto-ns" = [9500, 10_000]', 'rto-us" = [9.5, 10]')
        .replace("\n", "\r\n")
    )
    assert printed(plan) == "no renamed keys\n"
    assert [file.name for file in tmp_path.iterdir()] == ["plan.toml"]


def test_former_keys_of_nodes_are_renamed_in_their_tables(tmp_path: Path) -> None:
    text = """\
[node]
id = 0
gather-us = 20   # a comment is kept
metrics = "127.0.0.1:9464"
[network]
spray = 4
wait = 1
[transport]
name = "pfabric"
rto-ns = 45_000
[[peer]]
id = 0
"""
    file = tmp_path / "node.toml"
    file.write_text(text)
    new, settings = migrate(file)
    assert new == (
        text.replace("gather-us", "coalesce-us")
        .replace("metrics", "metrics-address")
        .replace("spray", "spray-ports")
        .replace("rto-ns = 45_000", "rto-us = 45")
    )
    assert [setting.line for setting in settings] == [3, 4, 6, 10]
    assert [setting.new for setting in settings[2:]] == ["spray-ports", "rto-us = 45"]


@pytest.mark.parametrize(
    ("transport", "key", "new"),
    [
        ("capton", "least-share-milli", "share-min"),
        ("capton", "threshold", "short-flow-packets"),
        ("dcpim", "rounds", "matching-rounds"),
        ("dctcp", "mark-above", "ecn-packets"),
        ("homa", "incast-bytes", "incast-unscheduled-bytes"),
        ("hpcc", "timeout-min-us", "rto-min-us"),
        ("hyline", "classes", "priorities"),
        ("ideal", "reach", "core-model"),
        ("pfabric", "starving-after", "starvation-timeouts"),
        ("cosy", "control-milli", "control-share"),
        ("fastpass", "epoch-milli", "epoch-length"),
        ("fastpod", "clock-ppb", "clock-drift-ppm"),
        ("hpcc", "timeout-max-ns", "rto-max-us"),
        ("ndp", "ports", "fabric-model"),
        ("ndp", "window", "window-initial"),
        ("pfabric", "network", "fabric-model"),
        ("capton", "window", "window-granted"),
        ("dcpim", "handshake", "notification"),
        ("fastpass", "model", "allocation-unit"),
        ("phost", "token-life-milli", "token-lifetime"),
        ("sird", "pace-percent", "credit-rate"),
        ("tcp", "rack-quarters", "reordering-window-rtts"),
    ],
)
def test_a_former_key_is_an_error_that_names_the_present_one(
    transport: str, key: str, new: str
) -> None:
    text = f'[topology]\nkind = "star"\nhosts = 4\n[transport]\nname = "{transport}"\n{key} = 1\n'
    text += '[workload]\npattern = "all-to-all"\nsizes = "imc10"\nload = 0.4\n'
    with pytest.raises(PlanError) as caught:
        _core.check(text, ".")
    assert caught.value.key == f"transport.{key}"
    assert f"`{new}`" in str(caught.value.expected)


@pytest.mark.parametrize("run", ["[run]\ntrace = 'a.pftrace'\n", "run = { trace = 'a.pftrace' }\n"])
def test_a_former_key_of_a_table_is_an_error_that_names_the_present_one(
    run: str, tmp_path: Path
) -> None:
    text = "topology = { kind = 'star', hosts = 4 }\ntransport = { name = 'dcpim' }\n"
    text += "workload = { pattern = 'all-to-all', sizes = 'imc10', load = 0.4, flows = 9 }\n" + run
    with pytest.raises(PlanError) as caught:
        _core.check(text, ".")
    assert caught.value.key == "run.trace"
    assert "`timeline`" in str(caught.value.expected)
    assert caught.value.line == 4 + ("[run]" in run)
    _core.check(migrated(tmp_path, text), ".")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("[fabric.pfc]\nmode = 'off'", "[fabric.pfc]\nthreshold = 'off'"),
        ("[measure]\nfinished-before-arrival = 5", "[measure]\ncompleted-before-flow = 5"),
        (
            "[deadlines]\nmean-us = 9\nat-least-ideals = 2",
            "[deadlines]\nmean-us = 9\nideal-factor-min = 2",
        ),
    ],
)
def test_former_keys_of_any_table_are_errors_and_are_migrated(
    old: str, new: str, tmp_path: Path
) -> None:
    text = "topology = { kind = 'star', hosts = 4 }\n"
    text += "transport = { name = 'cosy', best-effort = { name = 'dcpim', rounds = 2 } }\n"
    text += "workload = { pattern = 'all-to-all', sizes = 'imc10', load = 0.4, flows = 9 }\n"
    assert migrated(tmp_path, text + old) == text.replace("rounds", "matching-rounds") + new
    with pytest.raises(PlanError, match="the former name"):
        _core.check(text.replace("rounds", "matching-rounds") + old, ".")


def test_a_key_is_renamed_only_in_transports_that_had_it(tmp_path: Path) -> None:
    former = """\
topology = { kind = 'star', hosts = 4 }
transport = { name = 'tcp', handshake = false }
workload = { pattern = 'all-to-all', sizes = 'imc10', load = 0.4, flows = 9 }
[sweep]
transports = [
    "tcp:handshake=false,pfabric:reference,window=60",
    { name = "dcpim", handshake = "implicit" },
    { name = "capton", window = 90 },
]
"transport.window" = [60, 70]
"""
    present = former.replace("reference,window=", "reference,window-initial=")
    present = present.replace('"dcpim", handshake', '"dcpim", notification')
    present = present.replace('capton", window', 'capton", window-granted')
    assert migrated(tmp_path, former) == present


def test_keys_of_a_grid_are_former_only_if_all_its_transports_had_them(tmp_path: Path) -> None:
    plan = """\
topology = { kind = 'star', hosts = 4 }
transport = { name = 'dcpim' }
workload = { pattern = 'all-to-all', sizes = 'imc10', load = 0.4, flows = 9 }
[sweep]
"""
    for sweep in (
        "transports = ['tcp']\ngrid = { \"transport.handshake\" = [true, false] }\n",
        'points = [{ "transport.name" = \'tcp\', "transport.handshake" = true }]\n',
    ):
        assert migrated(tmp_path, plan + sweep) == plan + sweep
    former = plan + "grid = { \"transport.handshake\" = ['explicit', 'implicit'] }\n"
    assert migrated(tmp_path, former) == former.replace("handshake", "notification")


def test_texts_of_transports_may_have_spaces_and_lines(tmp_path: Path) -> None:
    sweep = (
        '[sweep]\ntransports = """\npfabric: paper, window=4 , rto-ns = 4000,\nndp, window=3"""\n'
    )
    present = sweep.replace("window=", "window-initial=").replace("rto-ns = 4000", "rto-us = 4")
    assert migrated(tmp_path, sweep) == present


def test_escaped_keys_are_renamed_whole(tmp_path: Path) -> None:
    former = '[sweep]\ngrid = { "transport.timeout-min\\u002dns" = [1000] }\n'
    present = '[sweep]\ngrid = { "transport.rto-min-us" = [1] }\n'
    assert migrated(tmp_path, former) == present


@pytest.mark.parametrize(
    ("transport", "key"), [("tcp", "window"), ("ndp", "network"), ("pfabric", "switch-ports")]
)
def test_a_key_that_a_transport_never_had_is_unknown(transport: str, key: str) -> None:
    text = f'[topology]\nkind = "star"\nhosts = 4\n[transport]\nname = "{transport}"\n{key} = 1\n'
    text += '[workload]\npattern = "all-to-all"\nsizes = "imc10"\nload = 0.4\nflows = 9\n'
    with pytest.raises(PlanError) as caught:
        _core.check(text, ".")
    assert str(caught.value.expected).startswith("one of preset, ")


def test_two_former_names_of_one_key_are_an_error(tmp_path: Path) -> None:
    with pytest.raises(PlanError, match="expected one of the keys"):
        migrated(tmp_path, "transport = { timeout-min-ns = 3000, timeout-min-us = 4 }\n")


def test_a_manifest_of_the_former_version_is_a_plan(tmp_path: Path) -> None:
    plan = rm.Plan(
        "topology = { kind = 'star', hosts = 4 }\ntransport = { name = 'dcpim' }\n"
        "workload = { pattern = 'all-to-all', sizes = 'imc10', load = 0.4, flows = 9 }\n"
        "run = { timeline = 'a.pftrace' }\n"
    )
    run = rm.run(plan, out=tmp_path / "run", quiet=True)
    file = run.path / "manifest.json"
    manifest = json.loads(file.read_text())
    of_run = manifest["plan"]["run"]
    manifest["plan"]["run"] = {key.replace("timeline", "trace"): of_run[key] for key in of_run}
    manifest["trace"] = manifest.pop("timeline")
    file.write_text(json.dumps(manifest))
    assert rm.Plan.load(file).check()["run"]["timeline"] == "a.pftrace"
    assert rm.Run(run.path).timeline_file == run.path / "a.pftrace"
