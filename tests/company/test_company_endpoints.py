"""A handler that is a model behind an endpoint, as the company file says it."""

from __future__ import annotations

import pytest

from crewlet.company import check_text, parse_company
from crewlet.company.endpoint import BASE_URL, ROUNDS

ENV = {"K": "sk-secret-1", "BAD": "sk secret", "ALSO": "sk-secret-2"}


def company(handler: str, role: str = "{name: Dev}") -> str:
    return f"name: T\nhandler: {handler}\nroles:\n  - {role}\n"


def test_an_endpoint_is_read_with_its_defaults_and_its_key_is_shown_nowhere() -> None:
    loaded = parse_company(company("{openai: {model: m-1, key: '${K}'}}"), env=ENV)
    spec = loaded.handler_of(loaded.seats[0])
    assert spec is not None and spec.openai is not None
    endpoint = spec.openai
    assert (endpoint.base_url, endpoint.rounds, endpoint.temperature) == (BASE_URL, ROUNDS, None)
    assert endpoint.key is not None and endpoint.key.reveal() == "sk-secret-1"
    assert "sk-secret" not in repr(spec) + repr(loaded) + loaded.source_text


def test_every_key_of_the_file_is_kept_from_those_who_do_the_work() -> None:
    role = "{name: Dev, handler: {openai: {model: m, key: '${ALSO}'}}}"
    loaded = parse_company(company("{openai: {model: m, key: '${K}'}}", role), env=ENV)
    assert loaded.secrets() == ["sk-secret-1", "sk-secret-2"]


@pytest.mark.parametrize(
    ("handler", "fault"),
    [
        ("{openai: {key: '${K}'}}", "the key 'model' is missing"),
        ("{openai: {model: m, key: sk-1}}", "a secret is not written into the file"),
        ("{openai: {model: m, key: '${BAD}'}}", "characters that no key of an API has"),
        ("{openai: {model: m, base_url: models}}", "is no address; write it like https://api"),
        ("{openai: {model: m, base_url: 'http://u:p@h/v1'}}", "more than a server and a path"),
        ("{openai: {model: m, temperature: 3}}", "a number from 0 to 2"),
        ("{openai: {model: m}, command: [x]}", "`command` and `openai` stand here"),
    ],
)
def test_what_is_wrong_is_said(handler: str, fault: str) -> None:
    problems = [str(problem) for problem in check_text(company(handler), env=ENV)]
    assert len(problems) == 1 and fault in problems[0], problems
    assert "sk secret" not in problems[0]
