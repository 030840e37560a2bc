"""Lists of transports, as arguments of commands."""

import pytest

import rampmeter as rm
from rampmeter.choices.naming import TransportChoice, transports
from rampmeter.plan import schema

from .conftest import SMALL


def test_names_presets_and_keys() -> None:
    assert transports("dcpim, phost:reference,pfabric:window-initial=60, window-max=75") == [
        TransportChoice("dcpim"),
        TransportChoice("phost", "reference"),
        TransportChoice("pfabric", None, {"window-initial": 60, "window-max": 75}),
    ]


def test_a_transport_has_a_preset_and_keys() -> None:
    [one] = transports("pfabric:reference,window-initial=60")
    assert (one.preset, one.settings) == ("reference", {"window-initial": 60})


def test_several_of_one_name_have_labels_and_folders_that_differ() -> None:
    several = transports("dcpim,dcpim:paper,dcpim:beta=1.5,dcpim:beta=2.0")
    assert len({one.label for one in several}) == len({one.folder for one in several}) == 4
    assert {one.name for one in several} == {"dcpim"}


def test_values_are_toml_and_may_have_commas() -> None:
    [one, other] = transports('cosy:best-effort={ name = "dcpim", beta = 1.5 },slots=2,dcpim')
    assert one.settings == {"best-effort": {"name": "dcpim", "beta": 1.5}, "slots": 2}
    assert other.name == "dcpim"


def test_all_is_every_transport() -> None:
    assert [one.name for one in transports("all")] == list(schema.names())


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "expected names that differ"),
        ("dcpim,", "expected names that differ"),
        ("dcpim,dcpim", "expected names that differ"),
        ("window=60", "expected a name before window=60"),
        ("dcpim:", "expected name, name:preset or name:key=value, got dcpim:"),
        (":paper", "expected name, name:preset or name:key=value, got :paper"),
        ("dcpim:beta=", "expected key=value, got beta="),
        ("dcpim:beta=1,beta=2", "expected keys that differ"),
    ],
)
def test_other_lists_are_refused(text: str, message: str) -> None:
    with pytest.raises(rm.PlanError, match=message):
        transports(text)


def test_a_plan_keeps_the_keys_of_its_transport() -> None:
    plan = rm.Plan(SMALL).with_(("transport.beta", 1.5))
    [same, other] = transports("dcpim:matching-rounds=3,pfabric:window-initial=60")
    assert same.of(plan).get("transport") == {"name": "dcpim", "beta": 1.5, "matching-rounds": 3}
    assert other.of(plan).get("transport") == {"name": "pfabric", "window-initial": 60}


def test_the_ideal_has_no_files_of_packets() -> None:
    run = {"capture": "a.pcapng", "rates-us": 5.0, "paths": True, "blame": True}
    plan = rm.Plan("seed = 1").with_({"run": run, "transport": "dcpim"})
    assert TransportChoice("ideal").of(plan).get("run") == {"blame": True}
    assert TransportChoice("homa").of(plan).get("run") == run
