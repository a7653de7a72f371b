"""The structure of a file: odd documents, bombs, positions."""

from __future__ import annotations

import time

import pytest

from crewlet.company import check_text, parse_company
from crewlet.company.problems import Report
from crewlet.company.yaml import MAX_BYTES, MAX_VALUES, Items, Table, Text, read_yaml

COMPANY = "name: Octo\nroles:\n  - name: Dev\n"


def messages(text: str | bytes) -> list[str]:
    return [problem.message for problem in check_text(text, env={})]


@pytest.mark.field("C38")
@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "the file is empty"),
        ("# only a comment\n", "the file is empty"),
        ("---\n", "the file is empty"),
        ("- name: Octo\n", "must be a mapping (`key: value`), not a list"),
        ("Octo\n", "must be a mapping (`key: value`), not a text"),
        (COMPANY + "\tx: y\n", "a tab stands where YAML allows only spaces"),
        ("name:\tOcto\n", "a tab stands where YAML allows only spaces"),
        (COMPANY + "---\n" + COMPANY, "a second document starts here; a file holds one"),
        (COMPANY + "name: Again\n", "the key 'name' stands here twice, first on line 1"),
        ("<<: {name: Octo}\n", "merge keys (`<<`) are not read"),
        ("name: [Octo\n", "this is no YAML"),
        ("name: Octo: Works\n", "needs quotes"),
        ("? [a, b]\n: c\n", "a key must be a plain word"),
        ("name: *nobody\n", "the alias '*nobody' has no anchor that ended before it"),
        ("policies: &own [*own]\n", "the alias '*own' has no anchor that ended before it"),
        ("name: !!int 7\n", "the tag 'tag:yaml.org,2002:int' is not read"),
        ("name: !mine x\n", "the tag '!mine' is not read"),
        ("name: !!python/object/apply:os.system [id]\n", "is not read"),
        ("name: \x00\n", "the character U+0000 may not stand in YAML"),
        ("name: \x1b[31m\n", "the character U+001B may not stand in YAML"),
        (b"name: Octo\nmission: caf\xe9\n", "the file is no UTF-8 text; save it as UTF-8"),
        ("\ud800: x", "the file is no UTF-8 text; save it as UTF-8"),
        ('name: "\\UFFFFFFFF"\n', "this is not readable as YAML"),
        (f"name: {'x' * MAX_BYTES}\n", "at most 1,048,576 are read"),
    ],
)
def test_oddities_are_refused_by_a_sentence(text: str | bytes, sentence: str) -> None:
    assert any(sentence in message for message in messages(text)), messages(text)


@pytest.mark.field("C38")
@pytest.mark.parametrize(
    "text",
    [
        b"\xef\xbb\xbf" + COMPANY.encode(),
        "\ufeff" + COMPANY,
        COMPANY.replace("\n", "\r\n"),
        "---\n" + COMPANY + "...\n",
        "%YAML 1.2\n---\n" + COMPANY,
        'name: Octo\n"roles":\n  - {"name": Dev,}\n',
        "name: Octo\nroles:\n  - {name: Dev, goal: &goal Build}\n  - {name: Ops, goal: *goal}\n",
        "name: &n Octo\nmission: *n\nvision: *n\nroles: [name: Dev]\n",
    ],
    ids=["bom", "bom text", "crlf", "markers", "directive", "flow", "anchor", "anchor twice"],
)
def test_oddities_that_are_fine(text: str | bytes) -> None:
    company = parse_company(text, env={})
    assert company.name == "Octo"
    assert company.seats[0].handle == "dev"
    assert not company.source_text.startswith("\ufeff")


def test_t29_aliases_count_as_copies_and_the_bound_is_exact() -> None:
    def values(copies: int, loose: int) -> str:
        inner = ", ".join(["x"] * 98)  # 99 values with the list itself
        uses = ", ".join(["*a"] * (copies - 1) + ["x"] * loose)
        return f"policies: [&a [{inner}], {uses}]\n"

    report = Report("x")
    spare = MAX_VALUES - 2 - 100 * 99  # the mapping and the outer list
    assert read_yaml(values(100, spare), report) and not report
    assert read_yaml(values(100, spare + 1), report) is None and report


def test_t29_a_small_file_cannot_unfold_into_a_huge_one() -> None:
    levels = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    for level in range(1, 30):
        levels.append(f"a{level}: &a{level} [" + ", ".join([f"*a{level - 1}"] * 9) + "]")
    started = time.monotonic()
    assert any("aliases written out" in message for message in messages("\n".join(levels)))
    assert time.monotonic() - started < 2


@pytest.mark.parametrize("opening", ["[", "{a: ", "- ", "? "])
def test_t29_depth_is_bounded_before_anything_recurses(opening: str) -> None:
    started = time.monotonic()
    found = messages(opening * (MAX_BYTES // len(opening) - 1))
    assert found and "deeper than 50" in found[0] + "deeper than 50" * (opening == "? ")
    assert time.monotonic() - started < 10


def test_depth_counts_through_aliases() -> None:
    def nested(core: str) -> str:
        return "[" * 30 + core + "]" * 30

    found = messages(f"a: &a {nested('x')}\nb: {nested('*a')}\n")
    assert "the nesting is deeper than 50 levels" in found


def test_every_node_knows_where_it_stands() -> None:
    report = Report("x")
    tree = read_yaml("name: Octo\nroles:\n  - name: 'No'\n    handle: No\n", report)
    assert isinstance(tree, Table)
    roles = tree.entries[1][1]
    assert isinstance(roles, Items) and isinstance(roles.items[0], Table)
    (_, name), (_, handle) = roles.items[0].entries
    assert isinstance(name, Text) and isinstance(handle, Text)
    assert (name.text, name.plain, name.mark.line, name.mark.column) == ("No", False, 3, 11)
    assert (handle.text, handle.plain, handle.mark.line, handle.mark.column) == ("No", True, 4, 13)


def test_problems_come_in_the_order_of_the_file() -> None:
    problems = check_text("x: 1\ny: 2\nname: null\nx: 3\n", env={})
    places = [(problem.line, problem.column) for problem in problems]
    assert places == sorted(places) and len(places) >= 4


def test_a_file_with_thousands_of_problems_lists_the_first_hundred() -> None:
    problems = check_text("name: Octo\nroles: [name: Dev]\n" + "a: b\n" * 5000, env={})
    assert len(problems) == 101
    assert problems[-1].message == "and 4900 more; mend these first"
