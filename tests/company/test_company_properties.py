"""Whatever stands in a file: a company, or a ConfigError whose problems have places."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from crewlet.company import Company, FileRefused, load_node_settings, parse_company
from crewlet.company.environment import Missing, expand
from crewlet.errors import ConfigError

PIECES = [
    *["name:", "roles:", "units:", "routes:", "handler:", "integrations:", "manages:", "lead:"],
    *[
        "- ",
        "  ",
        "    ",
        "\n",
        "\r\n",
        "\t",
        ": ",
        "? ",
        "[",
        "]",
        "{",
        "}",
        ", ",
        "#",
        "%YAML 1.1",
    ],
    *[
        "&a ",
        "*a",
        "<<: *a",
        "!!str ",
        "!x ",
        "|",
        ">",
        "|2",
        "'",
        '"',
        "\\",
        "---\n",
        "...\n",
        "~",
    ],
    *[
        "null",
        "No",
        "007",
        "1e999",
        "${X}",
        "${",
        "$$",
        "\ufeff",
        "\x85",
        "\u2028",
        "é",
        "Dev",
        "on",
    ],
    *['"\\ud800"', '"\\UFFFFFFFF"', '"\\x00"', "handle: a.b", "kind: human", "github:", "secret:"],
]
VALUES = st.recursive(
    st.text(max_size=8) | st.integers() | st.none() | st.booleans(),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(PIECES) | st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=12,
)
KEYS = st.sampled_from(
    ["name", "mission", "units", "roles", "routes", "integrations", "handler", "policies"]
)


def loads_or_is_refused(text: str | bytes) -> None:
    try:
        company = parse_company(text, env={"X": "x"})
    except FileRefused as refused:
        assert refused.problems
        for problem in refused.problems:
            assert problem.message and "\n" not in str(problem)
            str(problem).encode()
    else:
        assert isinstance(company, Company) and company.seats
        repr(company.seats).encode()


@given(st.text() | st.binary())
@settings(max_examples=300, deadline=None)
def test_any_text_and_any_bytes(text: str | bytes) -> None:
    loads_or_is_refused(text)


@given(st.lists(st.sampled_from(PIECES), max_size=40).map("".join))
@settings(max_examples=500, deadline=None)
def test_anything_that_looks_like_yaml(text: str) -> None:
    loads_or_is_refused(text)
    loads_or_is_refused("name: Octo\nroles:\n  - name: Dev\n    " + text)


@given(st.dictionaries(KEYS, VALUES))
@settings(max_examples=300, deadline=None)
def test_any_shape_under_known_keys(shape: dict[str, object]) -> None:
    import json

    loads_or_is_refused("\n".join(f"{key}: {json.dumps(value)}" for key, value in shape.items()))


@given(st.text(), st.dictionaries(st.text(), st.text()))
def test_expanding_answers_with_text_or_a_sentence(text: str, env: dict[str, str]) -> None:
    try:
        assert "${" in text or len(expand(text, env)) <= len(text)
    except Missing as missing:
        assert str(missing)


@given(st.dictionaries(st.text(max_size=9), st.text(max_size=9)))
def test_any_environment(env: dict[str, str]) -> None:
    try:
        load_node_settings(None, env)
    except ConfigError as error:
        assert "CREWLET_NODE_ID" in str(error)
