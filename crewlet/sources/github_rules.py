"""GitHub's events as tables: which conversation one belongs to, and whom it addresses.

An event and action that no table names concerns nobody; a route of the company may still ask
for it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Final, TypeAlias

from crewlet.sources import fields
from crewlet.sources.fields import Payload
from crewlet.sources.mentions import added, mentions

Reader: TypeAlias = Callable[[Payload], Iterable[str]]

_REPOSITORY: Final = re.compile(r"[A-Za-z0-9._-]{1,100}/[A-Za-z0-9._-]{1,100}")
_SHA: Final = re.compile(r"[0-9a-fA-F]{7,64}")
_QUEUE_REF: Final = re.compile(
    r"refs/heads/gh-readonly-queue/.{1,255}/pr-(\d{1,15})-[0-9a-f]{7,64}"
)
MAX_PULL_REQUESTS: Final = 10
"""Conversations that one check may belong to: pull requests that share its commit."""

THREADS: Final[Mapping[str, str]] = {
    "issues": "issue",
    "issue_comment": "issue",
    "pull_request": "pull_request",
    "pull_request_review": "pull_request",
    "pull_request_review_comment": "pull_request",
    "pull_request_review_thread": "pull_request",
    "discussion": "discussion",
    "discussion_comment": "discussion",
}
"""Events inside a numbered conversation, and the object that carries its number."""

RUNS: Final = frozenset({"check_run", "check_suite", "workflow_run"})
"""Events that may name pull requests, or none: a push to a branch runs checks, too."""

COMMIT_COMMENT: Final = "commit_comment"

_TEXT_LIFE: Final = frozenset({"edited", "closed", "reopened", "labeled", "unlabeled"})
FOLLOWED: Final[Mapping[str, frozenset[str]]] = {
    "issues": _TEXT_LIFE
    | {"opened", "assigned", "unassigned", "transferred", "milestoned", "demilestoned"}
    | {"typed", "untyped"},
    "issue_comment": frozenset({"created", "edited"}),
    "pull_request": _TEXT_LIFE
    | {"opened", "assigned", "unassigned", "milestoned", "demilestoned", "synchronize"}
    | {"ready_for_review", "converted_to_draft", "review_requested", "review_request_removed"}
    | {"auto_merge_enabled", "auto_merge_disabled", "enqueued", "dequeued"},
    "pull_request_review": frozenset({"submitted", "edited", "dismissed"}),
    "pull_request_review_comment": frozenset({"created", "edited"}),
    "pull_request_review_thread": frozenset({"resolved", "unresolved"}),
    "commit_comment": frozenset({"created"}),
    "discussion": _TEXT_LIFE
    | {"created", "answered", "unanswered", "transferred", "category_changed"},
    "discussion_comment": frozenset({"created", "edited"}),
    "check_run": frozenset({"completed"}),
    "check_suite": frozenset({"completed"}),
    "workflow_run": frozenset({"completed"}),
}
"""What those already in the conversation want to hear. Deletions, locks and pins they do not."""


def followed(event: str, action: str) -> bool:
    """Whether this belongs to a conversation in a way that its followers are told."""
    return action in FOLLOWED.get(event, ())


def identities(event: str, payload: Payload) -> tuple[str, ...]:
    """The conversations that a payload names, as `OWNER/REPO#N` or `OWNER/REPO@SHA`."""
    base = repository(payload)
    if not base:
        return ()
    if event == COMMIT_COMMENT:
        sha = fields.text(payload, "comment", "commit_id")
        return (f"{base}@{sha}",) if _SHA.fullmatch(sha) else ()
    return tuple(f"{base}#{number}" for number in numbers(event, payload))


def numbers(event: str, payload: Payload) -> tuple[int, ...]:
    """The numbers of the issue, discussion or pull requests that a payload names."""
    if event in RUNS:
        pulls = fields.items(payload, event, "pull_requests")
        found = (fields.number(pull, "number") for pull in pulls)
        return tuple(dict.fromkeys(n for n in found if n))[:MAX_PULL_REQUESTS]
    thread = THREADS.get(event)
    number = fields.number(payload, thread, "number") if thread else None
    if number is None and thread == "pull_request":
        number = fields.number(payload, "number")
    return (number,) if number else ()


def repository(payload: Payload, *path: str) -> str:
    """`OWNER/REPO` of the payload, or of the object at `path`; '' where it has none."""
    where = fields.obj(payload, *(path or ("repository",)))
    full = fields.text(where, "full_name")
    if not full:
        full = f"{fields.text(where, 'owner', 'login')}/{fields.text(where, 'name')}"
    return full if _REPOSITORY.fullmatch(full) else ""


def queued_pull_request(payload: Payload) -> int | None:
    """The pull request in a merge group's ref: a reading of a name, so never a key."""
    match = _QUEUE_REF.fullmatch(fields.text(payload, "merge_group", "head_ref"))
    return int(match[1]) if match else None


def addressed(event: str, action: str, payload: Payload) -> tuple[str, ...]:
    """Whom this happening addresses, the sender included, each once in reading order."""
    found: dict[str, str] = {}
    for read in _ADDRESSES.get((event, action), ()):
        for login in read(payload):
            found.setdefault(login.casefold(), login)
    return tuple(found.values())


def _person(*path: str) -> Reader:
    return lambda payload: filter(None, [fields.name(payload, *path, "login")])


def _people(*path: str) -> Reader:
    return lambda payload: fields.names(payload, path, "login")


def _team(*path: str) -> Reader:
    return lambda payload: _team_names([fields.at(payload, *path)])


def _teams(*path: str) -> Reader:
    return lambda payload: _team_names(fields.items(payload, *path))


def _team_names(teams: Iterable[object]) -> list[str]:
    slugs = (fields.name(team, "slug") or fields.name(team, "name") for team in teams)
    return [f"team:{slug}" for slug in slugs if slug]


def _called(*path: str) -> Reader:
    return lambda payload: mentions(fields.text(payload, *path, "body"))


def _newly_called(*path: str) -> Reader:
    """An edit calls those whom the text before it did not; without that text, nobody."""

    def read(payload: Payload) -> Iterable[str]:
        before = fields.at(payload, "changes", "body", "from")
        if not isinstance(before, str):
            return ()
        return added(before, fields.text(payload, *path, "body"))

    return read


_REVIEWERS: Final[tuple[Reader, ...]] = (
    _people("pull_request", "assignees"),
    _people("pull_request", "requested_reviewers"),
    _teams("pull_request", "requested_teams"),
)
_AUTHOR: Final = _person("pull_request", "user")

_ADDRESSES: Final[Mapping[tuple[str, str], tuple[Reader, ...]]] = {
    ("issues", "opened"): (_people("issue", "assignees"), _called("issue")),
    ("issues", "edited"): (_newly_called("issue"),),
    ("issues", "assigned"): (_person("assignee"),),
    ("issue_comment", "created"): (_called("comment"),),
    ("issue_comment", "edited"): (_newly_called("comment"),),
    ("pull_request", "opened"): (*_REVIEWERS, _called("pull_request")),
    ("pull_request", "edited"): (_newly_called("pull_request"),),
    ("pull_request", "ready_for_review"): _REVIEWERS,
    ("pull_request", "assigned"): (_person("assignee"),),
    ("pull_request", "review_requested"): (
        _person("requested_reviewer"),
        _team("requested_team"),
    ),
    ("pull_request_review", "submitted"): (_AUTHOR, _called("review")),
    ("pull_request_review", "edited"): (_newly_called("review"),),
    ("pull_request_review_comment", "created"): (_AUTHOR, _called("comment")),
    ("pull_request_review_comment", "edited"): (_newly_called("comment"),),
    ("commit_comment", "created"): (_called("comment"),),
    ("discussion", "created"): (_called("discussion"),),
    ("discussion", "edited"): (_newly_called("discussion"),),
    ("discussion_comment", "created"): (_called("comment"),),
    ("discussion_comment", "edited"): (_newly_called("comment"),),
}
