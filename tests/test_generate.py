"""The classes of transports and tables, and the tables of keys, match the core."""

from dataclasses import fields
from pathlib import Path

import pytest

import rampmeter as rm
from rampmeter import transports
from rampmeter.plan import schema
from rampmeter.plan.base import Transport
from tools.generate import files as generate
from tools.generate import sources
from tools.generate.notes import notes
from tools.generate.stages import stage_pages

RENEW = f"renew them with `{generate.COMMAND}`, or `make generate`"


@pytest.mark.parametrize(
    "file",
    [
        generate.CLASSES,
        generate.PLAN_TABLES,
        generate.PAGE,
        generate.PROTOCOLS,
        generate.FIGURES,
        generate.README,
        generate.NODES,
        *(generate.PLANS / f"{name}.md" for name in ("fabric", "run", "sweep")),
        *(page for page, _ in stage_pages(generate.ROOT)),
        *notes(generate.ROOT),
    ],
    ids=lambda file: str(file.relative_to(generate.ROOT)),
)
def test_generated_files_match_the_core_and_the_ledger(file: Path) -> None:
    assert file.read_text(encoding="utf-8") == generate.files()[file], RENEW


@pytest.mark.parametrize("about", schema.transports(), ids=lambda about: about["name"])
def test_every_key_of_a_transport_has_a_source(about: schema.TransportInfo) -> None:
    documentation = " ".join((getattr(rm, generate.class_name(about)).__doc__ or "").split())
    for key in about["keys"]:
        source = sources.of_transport(about["name"], key["name"])
        assert source, key["name"]
        assert source in documentation


def test_every_source_is_of_a_key() -> None:
    groups = {name: of for name, of in sources.read().items() if name != sources.INHERITS}
    for name, table in groups.pop(sources.TABLES).items():
        assert {key.replace("-", "_") for key in table} <= {
            field.name for field in fields(getattr(rm, name))
        }
    used = set()
    for about in schema.transports():
        keys = {*(key["name"] for key in about["keys"]), *generate.ROUND_TRIPS}
        inherited = sources.read()[sources.INHERITS].get(about["name"])
        used |= {(of, key) for of in (about["name"], inherited, sources.COMMON) for key in keys}
    assert {(name, key) for name, of in groups.items() for key in of} <= used


@pytest.mark.parametrize("about", schema.transports(), ids=lambda about: about["name"])
def test_every_key_is_a_field_and_every_default_is_accepted(about: schema.TransportInfo) -> None:
    of: type[Transport] = getattr(rm, generate.class_name(about))
    assert of.__name__ in transports.__all__
    assert of.__name__ in rm.__all__
    names = {field.name for field in fields(of)}
    assert names >= {key["name"].replace("-", "_") for key in about["keys"]}
    for preset, values in about["presets"]:
        keys = {key.replace("-", "_"): value for key, value in values.items()}
        given = of(preset=preset, **keys)
        workload, topology = rm.imc10(0.5, 1), rm.leaf_spine()
        plan = rm.Plan.of(topology=topology, transport=given, workload=workload)
        checked = plan.check()["transport"]
        assert {key: checked[key] for key in values} == values


class TestSymbols:
    def test_letters_of_papers_are_keys(self) -> None:
        assert rm.DcPim(r=3, k=2).table() == {"name": "dcpim", "matching-rounds": 3, "channels": 2}

    def test_a_key_and_its_letter_together_are_refused(self) -> None:
        with pytest.raises(ValueError, match="expected one of r and matching_rounds, got both"):
            rm.DcPim(r=3, matching_rounds=3).table()


def test_another_transport_runs_in_lower_classes() -> None:
    table = rm.Cosy(slots=4, best_effort=rm.DcPim(beta=1.5)).table()
    assert table["best-effort"] == {"name": "dcpim", "beta": 1.5}


def test_any_other_transport_is_named_with_options() -> None:
    plan = rm.Plan.of(
        topology=rm.star(4),
        transport=rm.Transport(name="carrier-pigeon", options={"loft": 3}),
        workload=rm.imc10(0.5, 1),
    )
    with pytest.raises(rm.PlanError, match=r"expected one of ideal, dcpim, .*carrier-pigeon"):
        plan.check()
