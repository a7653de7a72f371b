"""Who a Markdown text calls by name, and who it only shows or quotes."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crewlet.sources.mentions import MAX_MENTIONS, added, mentions


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("", ()),
        ("@octocat", ("octocat",)),
        ("hi @octocat, and @Hacktocat.", ("octocat", "Hacktocat")),
        ("(@a) [@b] *@c* _@d_ '@e' @f's @g: @h; @i! @j?", tuple("abcefghij")),
        ("@octo-cat- then @x--y", ("octo-cat", "x")),
        ("@OctoCat @octocat @OCTOCAT", ("OctoCat",)),
        ("cc @acme/core-team, @acme/x.", ("team:acme/core-team", "team:acme/x")),
        ("@alice/@bob", ("alice", "bob")),
        ("你好@octocat你好", ("octocat",)),
        ("@user_corp", ("user_corp",)),
        ("@ops-bot[bot] broke", ("ops-bot[bot]",)),
        ("a@b.example b@c", ()),
        ("@someone@mastodon.example @example.com @pkg/x@7.6.1", ()),
        ("@" + "x" * 40, ()),
        ("@" + "x" * 39, ("x" * 39,)),
        ("@ octocat @-x @", ()),
        ("@@octocat", ()),
        ("https://social.example/@bob and @eve", ("eve",)),
        ("see `@not` and ``@n`ot`` but @yes", ("yes",)),
        ("`unclosed @yes", ("yes",)),
        ("`` @yes `", ("yes",)),
        ("a ` b\n\n@yes ` c", ("yes",)),
        (r"\`@yes\`", ("yes",)),
        ("```\n@not\n```\n@yes", ("yes",)),
        ("```sh\n@not\n````\n@yes", ("yes",)),
        ("~~~\n@not\n```\n@not\n~~~\n@yes", ("yes",)),
        ("```\n@not to the end", ()),
        ("```inline @not``` @yes", ("yes",)),
        ("> @not\n@yes", ("yes",)),
        ("   > @not", ()),
        ("a\n\n    @not\n\n    @not\n\n@yes", ("yes",)),
        ("a\n    @yes", ("yes",)),
        ("- item\n\n    @yes", ("yes",)),
        ("1. item\n   @yes", ("yes",)),
        ("- item\n\nplain\n\n    @not", ()),
        ("<!-- @not\n\n@not -->\n@yes", ("yes",)),
        ("<!-- @yes", ("yes",)),
        ("<pre>@not</pre><CODE>@not</CODE> @yes", ("yes",)),
        ("@one\r\n\r\n`@not`\r\n```\r\n@not\r\n```\r\n@two", ("one", "two")),
    ],
)
def test_mentions(text: str, names: tuple[str, ...]) -> None:
    assert mentions(text) == names


def test_an_edit_calls_only_those_it_brings_in() -> None:
    assert added("@a and `@b`", "@A, @b, @c") == ("b", "c")


def test_a_text_calls_at_most_fifty() -> None:
    assert len(mentions(" ".join(f"@user{n}" for n in range(200)))) == MAX_MENTIONS == 50


LOGIN = st.from_regex(r"[a-zA-Z0-9]([a-zA-Z0-9]|-[a-zA-Z0-9]){0,12}", fullmatch=True)


@given(st.text())
def test_any_text_is_read_without_raising(text: str) -> None:
    assert all(mentions(text))


@given(st.text(alphabet="@`~>-\n\r\t ab/.[bot]<!->\\", max_size=200))
def test_names_are_clean_and_distinct(text: str) -> None:
    found = mentions(text)
    assert len({name.casefold() for name in found}) == len(found)
    assert all(name.removeprefix("team:")[0].isalnum() for name in found)
    assert all(f"@{name.removeprefix('team:')}" in text for name in found)


@given(st.lists(LOGIN, max_size=8), st.sampled_from([" ", ", ", "\n\n", " and ", "\r\n", "; "]))
def test_logins_in_prose_are_all_found(logins: list[str], between: str) -> None:
    expected = {login.casefold() for login in logins}
    found = mentions(between.join(f"@{login}" for login in logins))
    assert {name.casefold() for name in found} == expected


@given(
    LOGIN, st.sampled_from(["`@{}`", "```\n@{}\n```", "> @{}", "<!-- @{} -->", "x@{}", "    @{}"])
)
def test_a_login_that_is_only_shown_is_not_called(login: str, frame: str) -> None:
    assert mentions(frame.format(login)) == ()


@pytest.mark.parametrize(
    "piece",
    ["`" * 1, "<!--", "@a", "@a/", "```\n", "> ", "<pre>", "@" + "a-" * 20, "\n\n", "    \n", "- ",
     "https://", "`a``b```c", "[bot]", "@x[bot]", "\\`", "~~~\n", "@a.a", "</code>", "<code>`"],
)  # fmt: skip
def test_t20_the_worst_texts_are_read_in_bounded_time(piece: str) -> None:
    text = "@z " + piece * (1_000_000 // len(piece))
    start = time.process_time()
    mentions(text)
    assert time.process_time() - start < 1.0
    ragged = "".join("`" * (n % 400) + "@b " for n in range(1500))
    start = time.process_time()
    mentions(ragged)
    assert time.process_time() - start < 1.0
