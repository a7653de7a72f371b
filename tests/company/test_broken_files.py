"""Broken company files, and every message that a person gets for them."""

from __future__ import annotations

from pathlib import Path

import pytest

from crewlet.company import FileRefused, check_company, load_company
from crewlet.errors import ConfigError

BROKEN = sorted((Path(__file__).parent / "broken").glob("*.yaml"))
ENVIRONMENT = {"EMPTY": ""}


@pytest.mark.parametrize("file", BROKEN, ids=lambda file: file.stem)
def test_every_message_names_place_path_and_way_out(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(file.parent)
    problems = check_company(Path(file.name), env=ENVIRONMENT)
    assert "".join(f"{problem}\n" for problem in problems) == file.with_suffix(
        ".expected"
    ).read_text(encoding="utf-8")


@pytest.mark.parametrize("file", BROKEN, ids=lambda file: file.stem)
def test_a_broken_file_loads_nothing_and_the_error_lists_all(file: Path) -> None:
    with pytest.raises(ConfigError) as refused:
        load_company(file, env=ENVIRONMENT)
    assert isinstance(refused.value, FileRefused)
    assert list(refused.value.problems) == check_company(file, env=ENVIRONMENT)
    assert str(refused.value).count("\n") == len(refused.value.problems) - 1
    assert refused.value.blame == "caller"


def test_there_are_at_least_ten() -> None:
    assert len(BROKEN) >= 10


def test_a_file_that_is_not_there_is_a_problem_like_any_other(tmp_path: Path) -> None:
    [problem] = check_company(tmp_path / "none.yaml", env={})
    assert (
        str(problem) == f"{tmp_path}/none.yaml: the file can't be read: No such file or directory"
    )
    [problem] = check_company(tmp_path, env={})
    assert "can't be read" in problem.message
