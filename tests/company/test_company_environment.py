"""Variables: filled in after parsing, in values only, and never shown."""

from __future__ import annotations

import copy
import pickle
import traceback

import msgspec
import pytest

from crewlet.company import FileRefused, Secret, check_text, parse_company
from crewlet.company.environment import Missing, expand, has_reference

HOSTILE = "!p$HOME: #x'\"\n{é}"
COMPANY = """\
name: Octo  # ${NOT_SET} in a comment
roles:
  - name: Dev
    goal: costs $5, see $${NOT_SET} in the docs
integrations:
  github:
    secret: ${T_SECRET}
"""


@pytest.mark.field("C28")
def test_a_value_arrives_unchanged_whatever_it_holds() -> None:
    company = parse_company(COMPANY, env={"T_SECRET": HOSTILE})
    assert company.integrations.github is not None
    assert company.integrations.github.secret.reveal() == HOSTILE
    assert company.seats[0].goal == "costs $5, see ${NOT_SET} in the docs"


@pytest.mark.field("C28")
@pytest.mark.parametrize("value", [HOSTILE, "$T_SECRET", "${T_SECRET}", "$$", "a: b\nname: Evil"])
def test_what_a_variable_holds_is_never_read_again(value: str) -> None:
    company = parse_company(COMPANY, env={"T_SECRET": value})
    assert company.integrations.github is not None
    assert company.integrations.github.secret.reveal() == value
    assert company.name == "Octo"


@pytest.mark.field("C28")
@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("$5", "$5"),
        ("$HOME", "$HOME"),
        ("5$", "5$"),
        ("$$", "$"),
        ("$$$$", "$$"),
        ("$${H}", "${H}"),
        ("$$${H}", "$host"),
        ("https://${H}:${P}/x", "https://host:80/x"),
        ("${H}${H}", "hosthost"),
    ],
)
def test_dollars(text: str, value: str) -> None:
    assert expand(text, {"H": "host", "P": "80"}) == value


@pytest.mark.parametrize("text", ["${}", "${a b}", "${H:-x}", "${H", "${1}", "${é}", "a ${ b"])
def test_a_reference_that_names_nothing_is_refused(text: str) -> None:
    assert has_reference(text)
    with pytest.raises(Missing, match=r"names no variable; write \$\{NAME\}, or \$\$"):
        expand(text, {"H": "host"})


@pytest.mark.field("C28")
def test_list_items_numbers_and_nested_values_are_filled_in() -> None:
    company = parse_company(
        "name: ${N}\nroles:\n  - {name: Dev, handle: '${HANDLE}'}\n"
        "handler:\n  command: [python, '${FILE}', 'http://${H}:${P}/x']\n  timeout_s: ${T}\n",
        env={"N": "Octo", "HANDLE": "dev", "FILE": "a b.py", "H": "h", "P": "1", "T": "2.5"},
    )
    assert company.handler is not None
    assert company.handler.command == ("python", "a b.py", "http://h:1/x")
    assert (company.handler.timeout_s, company.seats[0].handle) == (2.5, "dev")


def test_a_command_in_one_text_is_split_before_variables_are_filled_in() -> None:
    company = parse_company(
        "name: Octo\nroles: [name: Dev]\nhandler:\n  command: python -m 'my work' ${FILE}\n",
        env={"FILE": "a b.py"},
    )
    assert company.handler is not None
    assert company.handler.command == ("python", "-m", "my work", "a b.py")


@pytest.mark.field("C28")
def test_an_unset_variable_is_refused_with_name_line_and_path() -> None:
    [problem] = check_text(COMPANY, env={})
    assert (problem.line, problem.path) == (7, "integrations.github.secret")
    assert problem.message == "the environment variable T_SECRET is not set"


@pytest.mark.field("C28")
def test_an_empty_secret_is_refused() -> None:
    [problem] = check_text(COMPANY, env={"T_SECRET": ""})
    assert problem.message == (
        "the environment variable T_SECRET is set but empty; a secret can't be empty"
    )


@pytest.mark.field("C28")
def test_keys_are_not_filled_in_and_the_message_says_so() -> None:
    [problem] = check_text("name: Octo\nroles: [name: Dev]\n${KEY}: x\n", env={"KEY": "mission"})
    assert problem.line == 3
    assert problem.message == (
        "unknown key '${KEY}'; variables are filled in in values, never in keys"
    )


def test_bytes_that_are_no_text_are_refused() -> None:
    [problem] = check_text(COMPANY, env={"T_SECRET": "\udcff"})
    assert "T_SECRET holds bytes that are no UTF-8 text" in problem.message


def test_a_secret_written_into_the_file_is_refused_and_not_repeated() -> None:
    for text in (
        COMPANY.replace("${T_SECRET}", "hunter2"),
        COMPANY.replace("secret: ${T_SECRET}", "hunter2"),
        COMPANY.replace("\n    secret: ${T_SECRET}", " hunter2"),
    ):
        problems = check_text(text, env={})
        assert problems and not any("hunter2" in str(problem) for problem in problems)


@pytest.mark.field("C28")
def test_the_secret_appears_nowhere() -> None:
    value = "s3cr3t-value"
    company = parse_company(COMPANY, env={"T_SECRET": value})
    assert company.integrations.github is not None
    secret = company.integrations.github.secret
    for shown in (
        repr(company),
        str(secret),
        f"{secret}",
        f"{secret!s:>5}",
        repr(company.integrations),
    ):
        assert value not in shown
    assert "${T_SECRET}" in company.source_text and value not in company.source_text
    with pytest.raises(TypeError):
        msgspec.json.encode(company)
    with pytest.raises(TypeError):
        pickle.dumps(secret)
    assert copy.deepcopy(secret) is secret and not hasattr(secret, "__dict__")


@pytest.mark.field("C28")
def test_a_secret_in_the_wrong_place_is_not_shown_by_errors() -> None:
    value = "s3cr3t value\n"
    text = (
        "name: Octo\nnotification_rate_limit: ${S}\nroles:\n"
        "  - {name: '${S}', handle: '${S}', email: '${S}', kind: '${S}', manages: ['${S}']}\n"
        "routes:\n  - {event: '${S}', to: '${S}'}\n"
    )
    with pytest.raises(FileRefused) as refused:
        parse_company(text, env={"S": value})
    assert len(refused.value.problems) >= 5
    assert "s3cr3t" not in "".join(traceback.format_exception(refused.value))


def test_secrets_compare_by_what_they_hold() -> None:
    assert Secret("é") == Secret("é") != Secret("e")
    assert Secret("x") != "x" and hash(Secret("x")) == hash(Secret("x"))
    assert not Secret("")
