"""docs/guide/commands.md names the commands that there are, and no others."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import click

from crewlet.cli.app import app

GUIDE = Path(__file__).parents[2] / "docs" / "guide" / "commands.md"


def commands(group: click.Group, head: str = "") -> Iterator[tuple[str, click.Command]]:
    for name, command in group.commands.items():
        if isinstance(command, click.Group):
            yield from commands(command, f"{head}{name} ")
        else:
            yield head + name, command


def nouns() -> str:
    return "|".join(name for name, each in app.commands.items() if isinstance(each, click.Group))


def test_the_guide_has_a_row_for_every_command():
    named = re.findall(rf"^\| `crewlet ((?:(?:{nouns()}) )?\w+)", GUIDE.read_text(), re.MULTILINE)
    assert sorted(named) == sorted(name for name, _ in commands(app))


def test_every_command_says_what_it_does_in_a_line_and_takes_the_shared_options():
    for name, command in commands(app):
        assert len(command.get_short_help_str(80)) > 15, name
        assert not command.get_short_help_str(70).endswith("..."), name
        options = {option for parameter in command.params for option in parameter.opts}
        assert "-o" in options, name
        assert ("--data" in options) is (name not in ("check", "schema", "simulate", "version")), (
            name
        )


def test_the_options_of_the_guide_exist():
    known = {
        option
        for _, command in commands(app)
        for parameter in command.params
        for option in parameter.opts
    }
    assert set(re.findall(r"(?<![\w-])--[a-z]+(?:-[a-z]+)*", GUIDE.read_text())) <= known | {
        "--help"
    }


def test_every_option_says_what_it_does_and_every_command_has_an_example():
    """The guide promises both of `--help`."""
    for name, command in commands(app):
        for option in (each for each in command.params if isinstance(each, click.Option)):
            assert option.help, (name, option.opts)
        assert re.search(rf"^.* crewlet {name}", command.epilog or "", re.MULTILINE), name
