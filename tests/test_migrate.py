"""`rampmeter migrate` and errors of renamed keys."""

import json
from pathlib import Path

import pytest

import rampmeter as rm
from rampmeter import PlanError, _core
from rampmeter._core import RENAMED_KEYS
from rampmeter.plan.migration import migrate

from .commands import ok

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


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("rto-ns = 45_000", "rto-us = 45"),
        ("rto-ns=9500", "rto-us=9.5"),
        ('"transport.rto-ns" = [9500, 10_000]', '"transport.rto-us" = [9.5, 10]'),
        ('"transport.rto-ns" = "1000..3000:500"', '"transport.rto-us" = "1..3:0.5"'),
        ('rto-ns = "1.1us"', 'rto-us = "1.1us"'),
        ("pfabric:rto-ns=72000,dcpim", "pfabric:rto-us=72,dcpim"),
        ("--set transport.rto-ns=1,2 --jobs 3", "--set transport.rto-us=0.001,0.002 --jobs 3"),
        ("pace-percent = 99", "credit-rate = 0.99"),
        ("rack-quarters = 16", "reordering-window-rtts = 4"),
        ("clock-ppb = 50_000", "clock-drift-ppm = 50"),
        ("`rto-ns`", "`rto-us`"),
        ("run.trace = 'a'\nrun.trace-hosts = [1]", "run.timeline = 'a'\nrun.timeline-hosts = [1]"),
        ("--set run.trace=a.pftrace,b", "--set run.timeline=a.pftrace,b"),
        ("run = { trace = 'a', links = true }", "run = { timeline = 'a', links = true }"),
        ("[run]\ntrace = 'a'\n[x]\ntrace = 1", "[run]\ntimeline = 'a'\n[x]\ntrace = 1"),
        ("[run]\n'trace-events' = 9", "[run]\ntimeline-events = 9"),
        ("run = { 'trace' = 'a' }", "run = { 'timeline' = 'a' }"),
        (
            "file = 'run.trace'\n[run]\ntrace = 'run.trace.pftrace'",
            "file = 'run.trace'\n[run]\ntimeline = 'run.trace.pftrace'",
        ),
        ("workload.trace = 1\nrun.traces = 2", "workload.trace = 1\nrun.traces = 2"),
        ("macro-rto-ns = 1\nrto-ns-x = 2", "macro-rto-ns = 1\nrto-ns-x = 2"),
    ],
)
def test_a_former_key_gets_its_present_name_and_unit(old: str, new: str) -> None:
    assert migrate(old)[0] == new


def test_a_migrated_plan_is_accepted_and_keeps_the_rest(tmp_path: Path) -> None:
    plan = tmp_path / "plan.toml"
    plan.write_bytes(FORMER.replace("\n", "\r\n").encode())
    assert printed(plan, "--dry-run").splitlines() == [
        f"{plan}:6: rto-ns = 45_000 -> rto-us = 45",
        f'{plan}:8: rto-ns" = [9500, 10_000 -> rto-us" = [9.5, 10',
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


def test_former_keys_of_nodes_are_renamed_in_their_tables() -> None:
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
    new, settings = migrate(text)
    assert new == (
        text.replace("gather-us", "coalesce-us")
        .replace("metrics", "metrics-address")
        .replace("spray", "spray-ports")
        .replace("rto-ns = 45_000", "rto-us = 45")
    )
    assert [setting.line for setting in settings] == [3, 4, 6, 10]
    assert settings[2].new == "spray-ports = 4"


def test_keys_of_plans_are_not_renamed_as_those_of_nodes_are() -> None:
    plan = '[fabric]\nspray = "random"\n[network]\nspray = 4\n'
    assert migrate(plan) == (plan, [])


@pytest.mark.parametrize(
    ("transport", "key"),
    [
        ("capton", "least-share-milli"),
        ("cosy", "control-milli"),
        ("fastpass", "epoch-milli"),
        ("fastpod", "clock-ppb"),
        ("hpcc", "timeout-max-ns"),
        ("phost", "token-life-milli"),
        ("sird", "pace-percent"),
        ("tcp", "rack-quarters"),
    ],
)
def test_a_former_key_is_an_error_that_names_the_present_one(transport: str, key: str) -> None:
    new = {old: new for old, new, _ in RENAMED_KEYS}[key]
    text = f'[topology]\nkind = "star"\nhosts = 4\n[transport]\nname = "{transport}"\n{key} = 1\n'
    text += '[workload]\npattern = "all-to-all"\nsizes = "imc10"\nload = 0.4\n'
    with pytest.raises(PlanError) as caught:
        _core.check(text, ".")
    assert caught.value.key == f"transport.{key}"
    assert f"`{new}`" in str(caught.value.expected)


@pytest.mark.parametrize("run", ["[run]\ntrace = 'a.pftrace'\n", "run = { trace = 'a.pftrace' }\n"])
def test_a_former_key_of_a_table_is_an_error_that_names_the_present_one(run: str) -> None:
    text = "topology = { kind = 'star', hosts = 4 }\ntransport = { name = 'dcpim' }\n"
    text += "workload = { pattern = 'all-to-all', sizes = 'imc10', load = 0.4, flows = 9 }\n" + run
    with pytest.raises(PlanError) as caught:
        _core.check(text, ".")
    assert caught.value.key == "run.trace"
    assert "`timeline`" in str(caught.value.expected)
    assert caught.value.line == 4 + ("[run]" in run)
    new, settings = migrate(text)
    assert len(settings) == 1
    _core.check(new, ".")


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
