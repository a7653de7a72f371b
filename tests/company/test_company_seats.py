"""Seats: handles, ids, units, leads, and who is meant by a name."""

from __future__ import annotations

import json
import uuid

import pytest

from crewlet.company import AGENT_NAMESPACE, Company, agent_id, check_text, parse_company
from crewlet.topics import inbox

NO_HANDLES = [
    *["*", ">", ".", "", "..", "a.b", "a..b", "a b", "\t", "\r\n", "\0", "é", "bücher", "例え"],
    *["x" * 64, "x" * 65536, "Dev", "-a", "_a", "a*", "a>", "a/b", " a", "a ", "a\n", "\ud800"],
    *["\u202eved", "@dev", "dev:1"],
]
TREE = """\
name: Octo
roles:
  - {name: Boss, kind: human}
  - {name: Scribe, manages: [Ops Lead]}
units:
  - name: Engineering
    lead: Boss
    roles: [name: Dev]
    children:
      - name: Operations
        type: team
        lead: ops
        goals: [Sleep at night]
        roles:
          - {name: Ops Lead, handle: ops, manages: [dev, Watch]}
          - name: Watch
"""


@pytest.fixture
def company() -> Company:
    return parse_company(TREE, env={})


@pytest.mark.parametrize("handle", NO_HANDLES, ids=lambda handle: ascii(handle)[:20])
def test_t10_a_handle_is_one_subject_token(handle: str) -> None:
    text = f"name: Octo\nroles:\n  - {{name: A, handle: {json.dumps(handle)}}}\n"
    [problem] = check_text(text, env={})
    assert (problem.path, problem.line) == ("roles[0].handle", 3)
    assert len(problem.message) < 250 and problem.message.isprintable()
    with pytest.raises(ValueError, match="no handle"):
        inbox(handle)


@pytest.mark.parametrize("handle", ["a", "0", "a-b_c", "x" * 63, "on"])
def test_what_is_accepted_makes_a_subject(handle: str) -> None:
    company = parse_company(f"name: Octo\nroles:\n  - {{name: A, handle: {handle}}}\n", env={})
    assert inbox(company.seats[0].handle) == f"crewlet.agent.{handle}.inbox"


@pytest.mark.certifies(125)
def test_an_agent_id_follows_from_the_two_names(company: Company) -> None:
    dev = company.seat("dev")
    assert dev is not None
    assert str(AGENT_NAMESPACE) == "c1ea9c6e-3f5d-4c9c-9e9f-1d2c3b4a5e6f"
    assert dev.agent_id == agent_id("Octo", "dev") == str(uuid.uuid5(AGENT_NAMESPACE, "Octo:dev"))
    assert agent_id("Octo", "dev") == "976d5bff-d7c7-52eb-aec6-832cb21ed6bf"
    assert parse_company(TREE, env={}).seat("dev") == dev
    assert company.resolve(dev.agent_id) == dev


@pytest.mark.certifies(126)
def test_a_human_has_no_id_and_no_handler(company: Company) -> None:
    boss = company.seat("boss")
    assert boss is not None and not boss.is_agent
    assert boss.agent_id == "" and company.handler_of(boss) is None
    assert boss not in company.agents() and len(company.agents()) == 4


@pytest.mark.certifies(124)
def test_who_is_meant_follows_from_the_company(company: Company) -> None:
    ops = company.seat("ops")
    assert ops is not None
    assert company.resolve("ops") == company.resolve("Ops Lead") == ops
    assert company.resolve(ops.agent_id) == ops
    for nobody in ("", "OPS", "ops lead", "nobody", "Octo"):
        assert company.resolve(nobody) is None


def test_a_name_that_two_seats_bear_means_neither() -> None:
    roles = "name: Octo\nroles:\n  - {name: Dev, handle: a}\n  - {name: Dev, handle: b}\n"
    company = parse_company(roles, env={})
    assert company.resolve("Dev") is None and company.resolve("a") == company.seats[0]
    [problem] = check_text(roles + "routes: [{event: github/push, to: Dev}]\n", env={})
    assert problem.message == "2 roles bear this name; say which: a, b"


def test_a_handle_comes_before_somebody_elses_name() -> None:
    roles = "name: Octo\nroles:\n  - {name: b, handle: a}\n  - {name: Dev, handle: b}\n"
    assert parse_company(roles, env={}).resolve("b") == parse_company(roles, env={}).seats[1]


def test_seats_stand_in_the_order_of_the_file_with_their_units(company: Company) -> None:
    assert [(seat.handle, seat.unit, seat.unit_path, seat.line) for seat in company.seats] == [
        ("boss", "", (), 3),
        ("scribe", "", (), 4),
        ("dev", "Engineering", ("Engineering",), 8),
        ("ops", "Operations", ("Engineering", "Operations"), 15),
        ("watch", "Operations", ("Engineering", "Operations"), 16),
    ]
    engineering, operations = company.all_units()
    assert (engineering.lead, engineering.seats, engineering.type) == ("boss", ("dev",), "")
    assert (operations.lead, operations.seats, operations.type) == ("ops", ("ops", "watch"), "team")
    assert operations.goals == ("Sleep at night",) and engineering.units == (operations,)


def test_a_lead_manages_its_unit_and_whom_it_names(company: Company) -> None:
    managed = {seat.handle: seat.manages for seat in company.seats}
    assert managed == {
        "boss": ("dev",),
        "scribe": ("ops",),
        "dev": (),
        "ops": ("dev", "watch"),
        "watch": (),
    }


def test_roles_after_units_keep_their_place() -> None:
    text = "name: Octo\nunits:\n  - {name: U, roles: [name: First]}\nroles: [name: Second]\n"
    assert [seat.handle for seat in parse_company(text, env={}).seats] == ["first", "second"]


def test_a_role_that_fell_out_is_not_reported_as_missing_too() -> None:
    text = "name: Octo\nunits:\n  - {name: U, lead: a.b, roles: [{name: A, handle: a.b}]}\n"
    [problem] = check_text(text, env={})
    assert problem.path == "units[0].roles[0].handle"


def test_one_alias_for_two_roles_is_one_handle_twice() -> None:
    text = "name: Octo\nroles:\n  - &dev {name: Dev, email: a@b.c}\n  - *dev\n"
    assert any("is already that of the role on line 3" in p.message for p in check_text(text))


@pytest.mark.parametrize(
    ("text", "path", "sentence"),
    [
        ("roles: [name: Dev]", "", "the key 'name' is missing; for example `name: Octo Works`"),
        ("name: Octo", "", "the company has no roles; write `roles:` here or in a unit"),
        ("name: Octo\nroles: []", "", "the company has no roles; write `roles:` here or in a unit"),
        ("name: Octo\nroles: Dev", "roles", "a list (`- ...`) is needed here, not a text"),
        ("name: Octo\nroles: [Dev]", "roles[0]", "a mapping of keys is needed here, not a text"),
        (
            "name: Octo\nunits: [{name: U, roles: [name: A]}, {name: U, roles: [name: B]}]",
            "units[1].name",
            "a unit 'U' stands beside it on line 2",
        ),
        (
            "name: Octo\nroles: [name: A]\nhandler: {python: os.system}",
            "handler.python",
            "'os.system' names no function; write `module:function`",
        ),
        (
            "name: Octo\nroles: [name: A]\nhandler: {timeout_s: 5}",
            "handler",
            "one of `python`, `command` and `openai` is needed; none stands here",
        ),
        (
            "name: Octo\nroles: [name: A]\nhandler: {command: []}",
            "handler.command",
            "the command is empty; its first word is the program",
        ),
        (
            'name: Octo\nroles: [name: A]\nhandler: {command: "\'x"}',
            "handler.command",
            "a quote in the command has no end; write a list",
        ),
    ],
)
def test_what_is_no_company(text: str, path: str, sentence: str) -> None:
    [problem] = check_text(text, env={})
    assert (problem.path, problem.message) == (path, sentence)


def test_the_seats_own_handler_comes_first() -> None:
    company = parse_company(
        "name: Octo\nhandler: {python: 'a.b:c'}\nroles:\n"
        "  - {name: A, handler: {command: x y, timeout_s: 5}}\n  - name: B\n",
        env={},
    )
    own, other = (company.handler_of(seat) for seat in company.seats)
    assert own is not None and other is not None
    assert (own.command, own.timeout_s, own.python) == (("x", "y"), 5.0, "")
    assert (other.python, other.timeout_s) == ("a.b:c", 1800.0)
