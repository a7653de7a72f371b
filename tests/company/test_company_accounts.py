"""Outside accounts: compared without regard to case, owned by one seat each."""

from __future__ import annotations

import pytest

from crewlet.company import Company, check_text, parse_company

TEXT = """\
name: Octo
roles:
  - name: Dev
    email: Dev@Octo.example
    contact: {github_login: octo-dev, gitlab_username: Octo.Dev}
  - name: Ops
    contact: {github_login: OPS-Bot}
  - name: Robot
    contact: {github_login: "robot[bot]"}
"""


@pytest.fixture
def company() -> Company:
    return parse_company(TEXT, env={})


@pytest.mark.field("C13")
@pytest.mark.parametrize(
    ("kind", "account", "handle"),
    [
        ("github_login", "Octo-Dev", "dev"),
        ("github_login", "OCTO-DEV", "dev"),
        ("github_login", "ops-bot", "ops"),
        ("github_login", "ROBOT[BOT]", "robot"),
        ("gitlab_username", "octo.dev", "dev"),
        ("email", "dev@octo.EXAMPLE", "dev"),
    ],
)
def test_case_does_not_matter_outside(
    company: Company, kind: str, account: str, handle: str
) -> None:
    seat = company.by_contact(kind, account)
    assert seat is not None and seat.handle == handle


@pytest.mark.field("C13")
@pytest.mark.parametrize(
    ("kind", "account"),
    [
        ("github_login", "ops-bot[bot]"),
        ("github_login", "robot"),
        ("github_login", "@octo-dev"),
        ("github_login", "octo"),
        ("github_login", ""),
        ("github_login", " "),
        ("gitlab_username", "octo-dev"),
        ("slack_user_id", ""),
        ("email", ""),
    ],
)
def test_everything_else_does(company: Company, kind: str, account: str) -> None:
    assert company.by_contact(kind, account) is None


def test_an_unknown_kind_of_account_is_a_mistake_of_the_caller(company: Company) -> None:
    with pytest.raises(ValueError, match="no kind of contact called 'telegram'"):
        company.by_contact("telegram", "x")


@pytest.mark.field("C13")
@pytest.mark.parametrize(
    ("kind", "one", "other"),
    [
        ("github_login", "Octo-Dev", "octo-dev"),
        ("gitlab_username", "dev", "DEV"),
        ("slack_user_id", "U01", "u01"),
        ("atlassian_account_id", "5b10a", "5B10A"),
        ("email", "A@b.c", "a@B.c"),
    ],
)
def test_one_account_belongs_to_one_seat(kind: str, one: str, other: str) -> None:
    def role(name: str, account: str) -> str:
        key = f"{kind}: {account}" if kind == "email" else f"contact: {{{kind}: {account}}}"
        return f"  - name: {name}\n    {key}\n"

    [problem] = check_text("name: Octo\nroles:\n" + role("A", one) + role("B", other), env={})
    assert problem.line == 6
    assert problem.message == (
        f"the account {other!r} already belongs to 'A' on line 4 "
        "(upper and lower case are the same there)"
    )


def test_one_block_of_accounts_used_by_two_roles_is_noticed() -> None:
    [problem] = check_text(
        "name: Octo\nroles:\n  - {name: A, contact: &c {github_login: x}}\n"
        "  - {name: B, contact: *c}\n",
        env={},
    )
    assert problem.path == "roles[1].contact.github_login" and "'A' on line 3" in problem.message


@pytest.mark.field("C13")
def test_handles_stay_what_they_are(company: Company) -> None:
    assert company.seat("Dev") is None and company.seat("DEV") is None
    [problem] = check_text("name: Octo\nroles:\n  - {name: A, handle: Dev}\n", env={})
    assert problem.path == "roles[0].handle"


def test_the_same_name_in_two_systems_is_no_clash() -> None:
    contact = "contact: {github_login: dev, gitlab_username: dev}"
    assert not check_text(f"name: Octo\nroles:\n  - {{name: A, {contact}}}\n", env={})


@pytest.mark.parametrize(
    ("key", "value", "sentence"),
    [
        ("github_login", "'@dev'", "write '@dev' without the '@'"),
        ("github_login", "octo dev", "'octo dev' holds a space; no account does"),
        ("slack_user_id", "' U01'", "the text ' U01' starts or ends with a space"),
        ("plane_user_id", "''", "the text is empty"),
    ],
)
def test_what_is_no_account_is_refused(key: str, value: str, sentence: str) -> None:
    text = f"name: Octo\nroles:\n  - name: A\n    contact:\n      {key}: {value}\n"
    [problem] = check_text(text, env={})
    assert (problem.line, problem.message) == (5, sentence)


@pytest.mark.parametrize("email", ["dev", "@octo.example", "a@b@c", "dev@"])
def test_what_is_no_address_is_refused(email: str) -> None:
    [problem] = check_text(f"name: Octo\nroles:\n  - {{name: A, email: '{email}'}}\n", env={})
    assert problem.message == f"{email!r} is no e-mail address"
