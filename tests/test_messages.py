"""Messages about bad input: the place, the expected and the actual value, in a user's words."""

import re
from pathlib import Path
from typing import Final

import click
import pytest

import rampmeter as rm
from rampmeter.choices.grammar import parse_values
from rampmeter.cli import COMMANDS, main
from rampmeter.text.locations import Location

from .commands import call, error_line, ok
from .conftest import SMALL

GOOD: Final = """\
seed = 1

[topology]
kind = "star"
hosts = 4

[transport]
name = "dcpim"

[workload]
pattern = "all-to-all"
sizes = "imc10"
load = 0.5
flows = 20
"""
DECODER: Final = re.compile(
    r"unknown field|unknown variant|missing field|invalid type|variant identifier|struct |enum "
    r"|i128|u64|f64|serde|os error|untagged|Traceback|\\(at: \\)"
)
"""Words of the decoder and of its language."""

BAD: Final = {
    "flws = 20": (
        "flows = 20",
        "line 14, column 1: workload.flws: .* did you mean flows",
    ),
    "host = 4": ("hosts = 4", "line 5, column 1: topology.host: .* did you mean hosts"),
    'kind = "strar"': ('kind = "star"', "line 4, column 8: topology.kind: .* did you mean star"),
    "kind = 5": ('kind = "star"', "line 4, column 8: topology.kind: expected a text, got 5"),
    "kind = star": ('kind = "star"', 'line 4, column 8: texts are in quotes, such as "star"'),
    "pattern = 5": ('pattern = "all-to-all"', "line 11, column 11: workload.pattern: .* got 5"),
    "hosts = [1]": ("hosts = 4", "line 5, column 9: topology.hosts: expected a whole number"),
    "load = .5": ("load = 0.5", "line 13, column 8: numbers begin with a digit, such as 0.5"),
    'load = "0.5"': ("load = 0.5", 'line 13, column 8: workload.load: .* got "0.5"'),
    "load = true": ("load = 0.5", "line 13, column 8: workload.load: expected a number, got true"),
    "load = nan": ("load = 0.5", "line 13: workload.load: expected a load .* got NaN"),
    "load = { a = 1 }": ("load = 0.5", "workload.load: expected a number, got a table"),
    "flows = 99999999999999999999": ("flows = 20", "line 14, .* below 2.64, got 9999"),
    "flows = -3": ("flows = 20", "line 14, column 9: workload.flows: .* got -3"),
    "flows = 20.0": ("flows = 20", "line 14, column 9: workload.flows: .* got 20.0"),
    "flows = 20\nflows = 3": ("flows = 20", "line 15, .* expected each key once, got flows twice"),
    "[topology]\n[topology]": ("[topology]", "expected each table once, got .topology. twice"),
    "": ('kind = "star"', "line 3, column 2: topology.kind: expected this key, got none"),
    "rounds = 3": ('name = "dcpim"', "line 7: transport.name: expected the name of a transport"),
    "name = true": ('name = "dcpim"', "line 8: transport.name: expected a text, got true"),
    'sizes = { cdf = "no.txt" }': (
        'sizes = "imc10"',
        "no.txt: .*No such file or directory \\[plan-file\\]$",
    ),
    "sizes = { fixd = 100 }": ('sizes = "imc10"', "line 12, .*sizes.fixd: .* did you mean fixed"),
    "sizes = [1]": ('sizes = "imc10"', "line 12, column 9: workload.sizes: .* got a list"),
    'sizes = "imc11"': ('sizes = "imc10"', "line 12: workload.sizes: .*imc11"),
    "seed = true": ("seed = 1", "line 1, column 8: seed: expected a whole number, got true"),
    "sed = 1": ("seed = 1", "line 1, column 1: sed: .* did you mean seed"),
}
"""Bad lines, the good ones, and the message."""
TABLES: Final = {
    '[fabric]\nspray = "rand"': "line 16, column 9: fabric.spray: .* did you mean random",
    '[fabric.pfc]\nthreshold = "dyn"': "line 16, column 13: fabric.pfc.threshold: .* dynamic",
    "[fabric]\nbuffer-bytes = true": "line 16, column 16: fabric.buffer-bytes: .* got true",
    '[fabric]\npfc = "on"': "line 16, column 7: fabric.pfc: expected a table, got .on.",
    "[run]\nlinks = 1": "line 16, column 9: run.links: expected true or false, got 1",
    "[run]\ncapture-hosts = 3": "line 16, column 17: run.capture-hosts: expected a list, got 3",
    '[measure]\nwarmup-flows = "mser"': "line 16, column 16: measure.warmup-flows: .* got .mser",
    "[[faults.outages]]\nfrom = 1": r"line 16, column 1: faults.outages.0..from: .* from-us",
    "[faults]\noutages = [5]": r"line 16, column 12: faults.outages.0.: expected a table, got 5",
    "[fabrik]\nalpha = 1": "line 15, column 2: fabrik: .* did you mean fabric",
}
"""Bad tables at the end of a plan."""
TRACES: Final = {
    "arrival_us,src,dst,size_bytes,src\n0,0,1,1000,2\n": "expected a column src once",
    "arrival_us,src,dst\n0,0,1\n": "expected a column size_bytes",
    "arrival_us,src,dst,size_bytes,job\n0,0,1,1000,a\n": "columns among .*, got job \\[.*\\]$",
    "arrival_us,src,dst,size_bytes\nx,0,1,1000\n": "bad.csv:2: arrival_us: .* got .x",
    "arrival_us,src,dst,size_bytes\n0,0,9,1000\n": "bad.csv:2: dst: .* below 4, got 9",
    "arrival_us,src,dst,size_bytes\n0,0,1,0\n": "bad.csv:2: size_bytes: .* got 0",
    "arrival_us,src,dst,size_bytes\n5,0,1,9\n1,0,1,9\n": "bad.csv:3: arrival_us: expected at l",
    "": "expected a header with the names of columns, got an empty file",
}
SETTINGS: Final = {
    "workload.load=x": 'workload.load: expected a number, got "x"',
    "workload.laod=0.3": "workload.laod: .* did you mean load",
    "load=0.5": "load: expected a table, got 0.5",
    "topology=star": 'topology: expected a table, got "star"',
    "transport=dcpmi": "transport.name: expected one of ideal, dcpim",
    "transport=dcpim,phost": "transport: expected one transport, got 'dcpim,phost'",
    "transport.chanels=3": "transport.chanels: expected one of preset, .*; did you mean channels",
    "seed.x=1": "seed.x: expected seed to be a table, got 1",
    "=3": "--set: expected key=value, got =3",
    "workload.hosts=[0": "workload.hosts: expected .* got ..0",
}


def error_of(*arguments: str) -> str:
    """Returns the message of a command that refuses its input."""
    result = call(*arguments)
    assert result.exit_code == 2, result.output
    assert DECODER.search(result.stderr) is None, result.stderr
    return result.stderr.strip()


def plan(folder: Path, text: str) -> str:
    file = folder / "bad.toml"
    file.write_bytes(text.encode())
    return str(file)


@pytest.mark.parametrize("line", BAD)
def test_bad_lines_are_named_with_the_place_of_the_key(line: str, tmp_path: Path) -> None:
    good, message = BAD[line]
    assert re.search(message, error_of("check", plan(tmp_path, GOOD.replace(good, line, 1))))


@pytest.mark.parametrize("table", TABLES)
def test_bad_tables_are_named_with_the_place_of_the_key(table: str, tmp_path: Path) -> None:
    assert re.search(TABLES[table], error_of("check", plan(tmp_path, f"{GOOD}{table}\n")))


@pytest.mark.parametrize("trace", TRACES)
def test_bad_traces_are_named_with_line_and_column(trace: str, tmp_path: Path) -> None:
    (tmp_path / "bad.csv").write_text(trace)
    head = GOOD.partition("[workload]")[0]
    text = f'{head}[workload]\npattern = "trace"\nfile = "bad.csv"\n'
    assert re.search(TRACES[trace], error_of("check", plan(tmp_path, text)))


@pytest.mark.parametrize("setting", SETTINGS)
def test_bad_settings_are_named_by_their_key(setting: str, tmp_path: Path) -> None:
    message = error_of("run", plan(tmp_path, GOOD), "--set", setting)
    assert re.search(SETTINGS[setting], message)
    assert "line 1" not in message


def test_bad_variations_are_named_by_their_key(tmp_path: Path) -> None:
    varied = "--vary", "workload.laod=0.3", "--out", str(tmp_path / "s")
    message = error_of("sweep", plan(tmp_path, GOOD), *varied)
    assert "workload.laod: expected one of" in message
    assert "(at: dcpim workload.laod=0.3)" in message


def test_a_comparison_names_the_transport_of_an_error(tmp_path: Path) -> None:
    arguments = "--transports", "dcpim,homa:priorities=99", "--out", str(tmp_path / "c")
    message = error_of("compare", plan(tmp_path, GOOD), *arguments)
    assert message.endswith("got 99 (at: homa:priorities=99) [plan-value]")


def test_an_extension_that_is_no_library_is_one_line(tmp_path: Path) -> None:
    file = plan(tmp_path, GOOD)
    assert "--extension: expected a shared library" in error_of("--extension", file, "check", file)


def test_a_missing_source_of_a_conversion_is_named(tmp_path: Path) -> None:
    source = str(tmp_path / "no.txt")
    assert error_of("convert", source, "t.csv").endswith(
        "no.txt: No such file or directory [plan-file]"
    )


@pytest.mark.parametrize("form", ["bom", "windows"])
def test_files_of_windows_are_read(form: str, tmp_path: Path) -> None:
    def encoded(text: str) -> bytes:
        return b"\xef\xbb\xbf" + text.encode() if form == "bom" else crlf(text)

    def crlf(text: str) -> bytes:
        return text.replace("\n", "\r\n").encode()

    (tmp_path / "sizes.txt").write_bytes(encoded("1000 0.5\n2000 1.0\n"))
    (tmp_path / "t.csv").write_bytes(encoded("arrival_us,src,dst,size_bytes\n0,0,1,1000\n"))
    goal = (
        "num_ranks 2\nrank 0 {\nl1: send 9b to 1 tag 0\n}\nrank 1 {\nl1: recv 9b from 0 tag 0\n}\n"
    )
    (tmp_path / "t.goal").write_bytes(encoded(goal))
    (tmp_path / "links.csv").write_bytes(encoded("from,to,gbps\na,s,10\nb,s,10\n"))
    head = GOOD.partition("[workload]")[0]
    network = '[topology]\nkind = "star"\nhosts = 4\n'
    plans = [
        GOOD.replace('"imc10"', '{ cdf = "sizes.txt" }'),
        f'{head}[workload]\npattern = "trace"\nfile = "t.csv"\n',
        f'{head}[workload]\npattern = "trace"\nfile = "t.goal"\n',
        GOOD.replace(network, '[topology]\nkind = "file"\nfile = "links.csv"\n'),
    ]
    for number, text in enumerate(plans):
        file = tmp_path / f"{number}.toml"
        file.write_bytes(encoded(text))
        ok("check", file)


def test_numbers_of_options_may_begin_with_a_point(tmp_path: Path) -> None:
    result = call("check", plan(tmp_path, GOOD), "--set", "workload.load=.3")
    assert "load = 0.3" in result.output


def test_whole_numbers_of_options_may_have_powers_of_ten(tmp_path: Path) -> None:
    result = call("check", plan(tmp_path, GOOD), "--set", "workload.flows=1e2")
    assert "flows = 100\n" in result.output


def test_an_error_about_a_listed_value_names_the_nearest_one() -> None:
    for key, value, near in (
        ("transport.name", "dcpmi", "dcpim"),
        ("workload.pattern", "al-to-all", "all-to-all"),
    ):
        with pytest.raises(rm.PlanError, match=f"did you mean {near}\\?"):
            rm.Plan(GOOD).with_((key, value)).check()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            'kind = "star"\nhost = 4\n',
            "line 2, .*: host: .*, got host; did you mean hosts. [(]at: ",
        ),
        ('kind = "sta"\nhosts = 4\n', "line 1, .*: kind: .*, got sta; did you mean star. [(]at: "),
        ("hosts = 4\n", "line 1, column 1: kind: expected this key, got none [(]at: hosts = 4[)]"),
        ("kind = 5\nhosts = 4\n", "network.toml:1:8: kind: expected a text, got 5 [(]at: kind = 5"),
    ],
)
def test_errors_of_topology_files_name_the_nearest_name(
    text: str, message: str, tmp_path: Path
) -> None:
    (tmp_path / "network.toml").write_text(text)
    network = '[topology]\nkind = "file"\nfile = "network.toml"\n'
    whole = GOOD.replace('[topology]\nkind = "star"\nhosts = 4\n', network)
    assert re.search(message, error_of("check", plan(tmp_path, whole)))


def test_dates_and_exponents_of_options_are_as_in_files(tmp_path: Path) -> None:
    plan = tmp_path / "plan.toml"
    plan.write_text(
        "topology = { kind = 'star', hosts = 4 }\ntransport = 'dcpim'\n"
        "workload = { pattern = 'all-to-all', sizes = 'imc10', load = 0.4, flows = 9 }\n"
    )
    dated = error_line("check", plan, "--set", "workload.flows=2020-01-01")
    assert "expected a number, a text or a list, got 2020-01-01" in dated
    table = "workload={pattern='all-to-all',sizes='imc10',load=0.4,flows=1e2}"
    assert ok("check", plan, "--set", table).exit_code == 0
    assert parse_values("1e2..3e2:1e2", Location()) == [100, 200, 300]


WRONG_COMMANDS = [
    (
        ("sweep", "small.toml", "--seeds", "2", "--metric", "zz"),
        "--metric: requires a precision; set `precision`, too",
    ),
    (
        ("sweep", "small.toml", "--seeds", "2", "--precision", "0.1", "--metric", "zz"),
        "--metric: expected one of utilisation, ",
    ),
    (("sweep", "small.toml", "--seeds-max", "5"), "--seeds-max: requires a precision; "),
    (("sweep", "small.toml", "--seeds", "2", "--out", "foo://b/x"), "foo://b/x: cannot be opened "),
    (("convert", "small.toml", "x.csv"), 'small.toml: expected a trace of flows, .* got "x.csv"'),
    (("run", "small.toml", "--set", "run.links=true", "--out", "run"), ".*false there, true here"),
    (("plot", "run", "run"), "DIR: expected each run once, got one of them twice"),
    (("plot", "run", "--kind", ""), "--kind: expected one of .*, got an empty text"),
    (
        ("export", "run", "--out", "x.parquet", "--table", "all"),
        "--table: expected one table for Parquet, got all",
    ),
]


@pytest.mark.parametrize(("words", "message"), WRONG_COMMANDS)
def test_wrong_commands_are_one_line_in_words_of_the_user(
    words: tuple[str, ...], message: str, here: Path
) -> None:
    (here / "small.toml").write_text(SMALL)
    ok("run", "small.toml", "--out", "run", "--quiet")
    line = error_line(*words)
    assert re.match(f"rampmeter: {message}", line), line
    assert "partial" not in line


@pytest.mark.parametrize("name", COMMANDS)
def test_an_option_with_one_value_is_refused_the_second_time(name: str) -> None:
    command = main.get_command(None, name)  # type: ignore[arg-type]
    assert command is not None
    for option in (one for one in command.params if isinstance(one, click.Option)):
        if option.is_flag or option.multiple or option.hidden:
            continue
        long = option.opts[-1]
        found = error_line(name, long, "1", f"{long}=2")
        expected = "expected the option once, got it again [plan-value]"
        assert found == f"rampmeter: {option.opts[0]}: {expected}"
