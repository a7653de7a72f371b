"""The demo, its copy, the schema and the reference: none of them tells another story."""

from __future__ import annotations

import importlib.resources
import json
import re
from pathlib import Path
from typing import Any

import pytest

from crewlet.company import check_text, company_schema, load_company, node_schema, parse_company
from crewlet.company.keys import COMPANY_SECTIONS, VENDORS
from crewlet.company.node_file import NODE_SECTIONS
from tests.company.reference import table

ROOT = Path(__file__).parents[2]
GUIDE = ROOT / "docs" / "guide" / "company.md"
SECRET = {"CREWLET_GITHUB_SECRET": "s"}
SECTIONS = {**COMPANY_SECTIONS, **NODE_SECTIONS}


def test_the_demo_is_five_seats_in_two_units_with_a_human_lead() -> None:
    demo = importlib.resources.files("crewlet.demo") / "company.yaml"
    company = parse_company(demo.read_bytes(), env=SECRET)
    assert len(company.seats) == 5 and len(company.agents()) == 4
    units = list(company.all_units())
    assert len(units) == 2
    for unit in units:
        lead = company.seat(unit.lead)
        assert lead is not None and lead.kind == "human"
    assert all(seat.contact.github_login for seat in company.seats)
    assert [route.to for route in company.routes if route.covers("github", "issues.opened")]
    assert company.handler is not None and company.handler.python == "crewlet.demo.handler:work"


def test_the_example_is_the_demo() -> None:
    example = ROOT / "examples" / "company.yaml"
    assert example.read_bytes() == (ROOT / "crewlet" / "demo" / "company.yaml").read_bytes()
    assert load_company(example, env=SECRET).name == "Octo Works"


@pytest.mark.parametrize("name", SECTIONS)
def test_the_guide_has_every_key_as_the_code_has_it(name: str) -> None:
    guide = GUIDE.read_text(encoding="utf-8")
    assert f"<!-- keys: {name} -->\n{table(SECTIONS[name])}\n" in guide + "\n"
    assert f"# {name}\n" in guide  # what `below` links to


def test_every_whole_company_in_the_guide_loads() -> None:
    guide = GUIDE.read_text(encoding="utf-8")
    blocks = re.findall(r"```yaml\n(.*?)```", guide, re.DOTALL)
    whole = [block for block in blocks if block.startswith("name:")]
    assert whole
    for block in whole:
        parse_company(block, env={})
    [route] = [block for block in blocks if block.startswith("routes:")]
    parse_company(f"name: Octo\nroles: [name: Triage]\n{route}", env={})


APART = {"handler": ["command"]}


def example(name: str) -> str:
    """A block with every example of its section that has no other block in it."""
    keys = {word: key for word, key in SECTIONS[name].items() if key.example}
    for word in APART.get(name, ()):
        del keys[word]
    return "{" + ", ".join(f"{word}: {_quoted(key.example)}" for word, key in keys.items()) + "}"


def _quoted(text: str) -> str:
    return text if text[0] in "[{" else json.dumps(text)


EXAMPLES = {
    "company": "{all}",
    "unit": "{{name: O, roles: [{{name: boss}}], units: [{all}]}}",
    "role": "{{name: O, roles: [{all}, {{name: ops}}, {{name: Reviewer}}]}}",
    "contact": "{{name: O, roles: [{{name: A, contact: {all}}}]}}",
    "handler": "{{name: O, roles: [name: A], handler: {all}}}",
    "placement": "{{name: O, roles: [{{name: A, placement: {all}}}]}}",
    "scheduling": "{{name: O, roles: [name: A], scheduling: {all}}}",
    "schedule": "{{name: O, units: [{{name: U, lead: A, roles: [name: A], schedules: [{all}]}}]}}",
    "route": "{{name: O, roles: [name: Triage], routes: [{all}]}}",
    **{
        vendor: f"{{{{name: O, roles: [name: A], integrations: {{{{{vendor}: {{all}}}}}}}}}}"
        for vendor in (*VENDORS, "mattermost")
    },
    "generic": "{{name: O, roles: [name: A], integrations: {{generic: {{deploys: {all}}}}}}}",
}


@pytest.mark.parametrize("name", EXAMPLES)
def test_every_example_is_accepted(name: str) -> None:
    text = EXAMPLES[name].format(all=example(name))
    if name == "company":
        text = text[:-1] + ", roles: [name: A]}"
    env = {f"{vendor.upper()}_WEBHOOK_SECRET": "s" for vendor in VENDORS}
    env |= {"MATTERMOST_HOOK_TOKEN": "s", "MATTERMOST_ACCESS_TOKEN": "s", "DEPLOYS_SECRET": "s"}
    assert not check_text(text, env=env), text


@pytest.mark.parametrize("name", SECTIONS)
def test_every_key_says_what_it_is(name: str) -> None:
    for key in SECTIONS[name].values():
        assert key.about.endswith(".") and (key.example or key.of)


@pytest.mark.parametrize(
    ("schema", "sections", "top"),
    [
        (company_schema(), COMPANY_SECTIONS, "company"),
        (node_schema(), NODE_SECTIONS, "node file"),
    ],
)
def test_the_schema_knows_every_key_and_closes_every_block(
    schema: dict[str, Any], sections: dict[str, Any], top: str
) -> None:
    assert json.loads(json.dumps(schema)) == schema
    for name, keys in sections.items():
        block = schema if name == top else schema["definitions"][name]
        words = {word for key, what in keys.items() for word in (key, *what.spellings)}
        assert set(block["properties"]) == words and block["additionalProperties"] is False
        assert all(each["description"] for each in block["properties"].values())
    for name in re.findall(r'"#/definitions/([^"]+)"', json.dumps(schema)):
        assert name in schema["definitions"]
