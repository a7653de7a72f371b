"""Bare words are the text that was typed, or refused with the advice to quote them."""

from __future__ import annotations

import pytest

from crewlet.company import Seat, check_text, parse_company

WORDS = ["No", "on", "off", "yes", "true", "007", "0x1F", "1e3", "12:30", "2026-01-02", "1.10", "="]


def only_seat(role: str) -> Seat:
    return parse_company(f"name: Octo\nroles:\n  - {role}\n", env={}).seats[0]


@pytest.mark.field("C38")
@pytest.mark.parametrize("word", WORDS)
@pytest.mark.parametrize("quote", ["", "'", '"'])
def test_a_word_is_what_was_typed(word: str, quote: str) -> None:
    typed = f"{quote}{word}{quote}"
    seat = only_seat(f"{{name: {typed}, handle: x, contact: {{github_login: {typed}}}}}")
    assert (seat.name, seat.contact.github_login) == (word, word)
    company = parse_company(f"name: {typed}\npolicies: [{typed}]\nroles: [name: x]\n", env={})
    assert (company.name, company.policies) == (word, (word,))


@pytest.mark.field("C38")
@pytest.mark.parametrize("handle", ["on", "no", "007", "1e3", "2026-01-02", "true"])
def test_a_handle_may_look_like_something_else(handle: str) -> None:
    assert only_seat(f"{{name: Somebody, handle: {handle}}}").handle == handle


@pytest.mark.parametrize(
    ("name", "handle"),
    [("No", "no"), ("007", "007"), ("2026-01-02", "2026-01-02"), ("Head of R&D!", "head-of-r-d")],
)
def test_a_handle_is_made_from_the_name(name: str, handle: str) -> None:
    assert only_seat(f"name: {name}").handle == handle


@pytest.mark.field("C38")
@pytest.mark.parametrize("word", ["null", "Null", "NULL", "~"])
@pytest.mark.parametrize("key", ["handle", "goal", "email", "policies"])
def test_words_for_nothing_are_refused_unquoted(word: str, key: str) -> None:
    text = f"name: Octo\nroles:\n  - name: Dev\n    {key}: {word}\n"
    if key == "policies":
        text = f"name: Octo\nroles: [name: Dev]\npolicies: [{word}]\n"
    [problem] = check_text(text, env={})
    assert problem.line in (3, 4) and key in problem.path
    assert problem.message == (
        f"{word} is read as 'no value' by YAML; quote it ('{word}') if it is text, "
        "or leave the key out"
    )


def test_quoted_they_are_text() -> None:
    seat = only_seat("{name: '~', handle: 'null', goal: \"~\"}")
    assert (seat.name, seat.handle, seat.goal) == ("~", "null", "~")


@pytest.mark.field("C38")
@pytest.mark.parametrize("key", ["on", '"on"', "'on'", "event"])
def test_a_route_works_however_its_key_is_written(key: str) -> None:
    company = parse_company(
        f"name: Octo\nroles: [name: Dev]\nroutes:\n  - {key}: github/issues.opened\n    to: dev\n",
        env={},
    )
    [route] = company.routes
    assert (route.event, route.to, route.line) == ("github/issues.opened", "dev", 4)


@pytest.mark.parametrize("key", ["roles", "routes", "units", "handler", "integrations", "policies"])
def test_a_block_with_everything_commented_out_is_left_out(key: str) -> None:
    rest = (
        "units:\n  - {name: U, roles: [name: Dev]}\n" if key == "roles" else "roles: [name: Dev]\n"
    )
    rest = rest if key != "units" else "roles: [name: Dev]\n"
    assert parse_company(f"name: Octo\n{rest}{key}:\n  # nothing\n", env={}).seats


@pytest.mark.certifies(75, 76)
@pytest.mark.parametrize(
    ("key", "good", "bad"),
    [
        (
            "notification_coalesce_window_seconds",
            ["0", "2.5", "60", "6e1"],
            ["-1", "60.01", "61", "inf", "nan", "1e999", "12:30", "[]", "", "0x10", "1_0"],
        ),
        ("notification_coalesce_max_batch", ["1", "20", "100"], ["0", "101", "1.5", "ten", "-3"]),
        ("notification_rate_limit", ["0", "5", "+7"], ["-1", "1e3", "true", "9" * 30]),
    ],
)
def test_numbers_are_taken_in_their_range_only(key: str, good: list[str], bad: list[str]) -> None:
    for number in good:
        company = parse_company(f"name: Octo\nroles: [name: Dev]\n{key}: {number}\n", env={})
        assert getattr(company, key) == float(number)
    for number in bad:
        [problem] = check_text(f"name: Octo\nroles: [name: Dev]\n{key}: {number}\n", env={})
        assert (problem.path, problem.line) == (key, 3)


@pytest.mark.certifies(76)
def test_the_defaults_of_collecting_mail() -> None:
    company = parse_company("name: Octo\nroles: [name: Dev]\n", env={})
    assert company.notification_rate_limit == 0
    assert (company.batch_options.max_batch, company.batch_options.linger_s) == (20, 0.0)
