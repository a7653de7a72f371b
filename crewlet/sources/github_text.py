"""What a person would want to read of a GitHub delivery, and its facts as metadata."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from crewlet.sources import fields
from crewlet.sources import github_rules as rules
from crewlet.sources.fields import Payload

_LISTED_COMMITS: Final = 20

_SPOKEN: Final[tuple[tuple[str, ...], ...]] = (
    ("comment",),
    ("review",),
    ("answer",),
    ("issue",),
    ("pull_request",),
    ("discussion",),
    ("release",),
)
"""Where the newest text of a payload stands: the first of these that is there."""

_OBJECTS: Final = (
    *(path[0] for path in _SPOKEN),
    "check_run",
    "check_suite",
    "workflow_run",
    "workflow_job",
    "merge_group",
    "deployment",
    "head_commit",
    "alert",
)
_TIMES: Final = (
    "updated_at",
    "submitted_at",
    "completed_at",
    "started_at",
    "created_at",
    "timestamp",
)
_QUIET: Final = frozenset(
    {"deleted", "closed", "labeled", "unlabeled", "unassigned", "milestoned", "demilestoned"}
    | {"synchronize", "transferred", "converted_to_draft", "review_request_removed", "reopened"}
    | {"auto_merge_enabled", "auto_merge_disabled", "enqueued", "dequeued", "typed", "untyped"}
    | {"pinned", "unpinned", "locked", "unlocked", "category_changed", "unanswered"}
)
"""Actions that change something about a text and say nothing new in it."""

_WRITTEN: Final = frozenset({"opened", "edited"})
"""Actions on an issue or a pull request that come with a text of their own."""

_TOLD_BY_TYPE: Final = _WRITTEN | {"created", "submitted", "published", "released"}
"""Actions whose text is all that is new: of another (`assigned`) one wants to know who it was."""

_DETAILS: Final = (
    "check",
    "workflow",
    "assignee",
    "requested_reviewer",
    "team",
    "label",
    "member",
    "state_reason",
    "conclusion",
    "status_state",
    "moved_from",
    "moved_to",
    "renamed_from",
    "old_title",
    "old_base",
)
_WORDS: Final[Mapping[str, str]] = {
    "issues": "issue",
    "gollum": "wiki",
    "synchronize": "updated with new commits",
}
_RUN_LIKE: Final = rules.RUNS | {"workflow_job"}


def subject(event: str, payload: Payload, metadata: Mapping[str, Any]) -> str:
    """The title of the conversation, '' where the payload has none: a run's name is no title."""
    if event == "push":
        return _pushed(metadata)
    named = "" if event in _RUN_LIKE else fields.short(payload, event, "name")
    return fields.short(payload, rules.THREADS.get(event, ""), "title") or named


def body(event: str, action: str, payload: Payload, metadata: Mapping[str, Any]) -> str:
    """The text that was written, else a sentence that says what happened."""
    if event == "push":
        return _commits(payload, metadata)
    said = "" if action in _QUIET or _only_around(payload) else _said(payload)
    if event == "pull_request_review" and metadata.get("review_state"):
        state = metadata["review_state"].replace("_", " ")
        return f"Review: {state}\n\n{said}".strip()
    if not said:
        return _sentence(event, metadata)
    if action not in _TOLD_BY_TYPE:
        return f"{_sentence(event, metadata)}\n\n{said}"
    return f"On {place}:\n\n{said}" if (place := _line_of(metadata)) else said


def lead(event: str, action: str, metadata: Mapping[str, Any]) -> str:
    """What stands for the body once a later event supersedes it, '' for what was written: the
    life of an issue or a pull request goes stale, a run's outcome too."""
    if event in rules.RUNS or (event in ("issues", "pull_request") and action not in _WRITTEN):
        return _sentence(event, metadata)
    return ""


def metadata(event: str, action: str, payload: Payload) -> dict[str, Any]:
    """The facts of a delivery: JSON values only, absent where the payload does not say."""
    return fields.stated(
        {
            "event": event,
            "action": action,
            "repo": rules.repository(payload),
            "organization": fields.name(payload, "organization", "login"),
            "sender_type": fields.name(payload, "sender", "type"),
            "url": _url(payload),
            "timestamp": _timestamp(payload),
            **_thread_facts(event, payload),
            **_change_facts(payload),
            **_git_facts(event, payload),
        }
    )


def _thread_facts(event: str, payload: Payload) -> dict[str, Any]:
    name = rules.THREADS.get(event, "")
    thread = fields.obj(payload, name)
    number = next(iter(rules.numbers(event, payload)), None)
    pull = name == "pull_request" or bool(fields.obj(thread, "pull_request"))
    return {
        "number": number,
        "is_pull_request": pull if number and name in ("issue", "pull_request") else None,
        "state": fields.short(thread, "state"),
        "state_reason": fields.short(thread, "state_reason"),
        "draft": fields.flag(thread, "draft"),
        "merged": fields.flag(thread, "merged"),
        "author": fields.name(thread, "user", "login"),
        "assignees": fields.names(thread, ("assignees",), "login"),
        "labels": fields.names(thread, ("labels",), "name"),
        "milestone": fields.short(thread, "milestone", "title"),
        "head": fields.short(thread, "head", "ref"),
        "base": fields.short(thread, "base", "ref"),
        "category": fields.short(thread, "category", "name"),
    }


def _change_facts(payload: Payload) -> dict[str, Any]:
    """What this one happening changed or added."""
    comment = fields.obj(payload, "comment")
    return {
        "label": fields.short(payload, "label", "name"),
        "assignee": fields.name(payload, "assignee", "login"),
        "requested_reviewer": fields.name(payload, "requested_reviewer", "login"),
        "team": fields.first(
            (
                fields.name(payload, "requested_team", "slug"),
                fields.name(payload, "requested_team", "name"),
            )
        ),
        "member": fields.name(payload, "member", "login"),
        "review_state": fields.short(payload, "review", "state"),
        "comment_id": fields.number(comment, "id"),
        "in_reply_to": fields.number(comment, "in_reply_to_id"),
        "path": fields.short(comment, "path"),
        "line": fields.number(comment, "line") or fields.number(comment, "original_line"),
        "commit": fields.short(comment, "commit_id"),
        "old_title": fields.short(payload, "changes", "title", "from"),
        "old_base": fields.short(payload, "changes", "base", "ref", "from"),
        "moved_to": _key(payload, "new_issue", "new_discussion", repository="new_repository"),
        "moved_from": _key(payload, "old_issue", "old_discussion", repository="old_repository"),
        "renamed_from": _renamed_from(payload),
    }


def _git_facts(event: str, payload: Payload) -> dict[str, Any]:
    run = fields.obj(payload, event) if event in _RUN_LIKE else {}
    ref = fields.short(payload, "ref")
    kind = fields.short(payload, "ref_type")
    branch = ref if kind == "branch" else ref.removeprefix("refs/heads/")
    tag = ref if kind == "tag" else ref.removeprefix("refs/tags/")
    return {
        "ref": ref,
        "branch": fields.first(
            (
                branch if kind == "branch" or branch != ref else "",
                fields.short(run, "head_branch"),
                fields.short(run, "check_suite", "head_branch"),
            )
        ),
        "tag": tag if kind == "tag" or tag != ref else fields.short(payload, event, "tag_name"),
        "sha": fields.short(payload, "after") or fields.short(payload, "sha"),
        "created": fields.flag(payload, "created"),
        "deleted": fields.flag(payload, "deleted"),
        "forced": fields.flag(payload, "forced"),
        "head_sha": fields.short(run, "head_sha"),
        "check": fields.short(payload, "check_run", "name"),
        "workflow": fields.short(payload, "workflow", "name"),
        "status": fields.short(run, "status"),
        "conclusion": fields.short(run, "conclusion"),
        "status_state": fields.short(payload, "state"),
        "queued_pull_request": rules.queued_pull_request(payload),
    }


def _key(payload: Payload, *objects: str, repository: str) -> str:
    """The other conversation key of a thread that moved to another repository."""
    base = rules.repository(payload, "changes", repository)
    for name in objects:
        number = fields.number(payload, "changes", name, "number")
        if base and number:
            return f"github:{base}#{number}"
    return ""


def _renamed_from(payload: Payload) -> str:
    """The repository's full name before a rename or a transfer: the base of its old keys."""
    now = rules.repository(payload)
    owner, _, name = now.partition("/")
    old_name = fields.name(payload, "changes", "repository", "name", "from")
    old_owner = fields.name(payload, "changes", "owner", "from", "user", "login") or fields.name(
        payload, "changes", "owner", "from", "organization", "login"
    )
    if not now or not (old_name or old_owner):
        return ""
    return f"{old_owner or owner}/{old_name or name}"


def _url(payload: Payload) -> str:
    """The page of the newest thing in the payload, else of the comparison or the repository."""
    places = [fields.short(payload, name, "html_url") for name in _OBJECTS]
    return fields.first(
        (
            *places,
            fields.short(payload, "compare"),
            fields.short(payload, "repository", "html_url"),
        )
    )


def _timestamp(payload: Payload) -> str:
    """When it happened, where the payload says so: the time of its newest object."""
    for name in _OBJECTS:
        if stated := fields.first(fields.moment(payload, name, key) for key in _TIMES):
            return stated
    return fields.first(fields.moment(payload, key) for key in _TIMES)


def _only_around(payload: Payload) -> bool:
    """Whether an edit left the text as it was: its title is new, or its base."""
    changes = fields.obj(payload, "changes")
    return bool(changes) and "body" not in changes and ("title" in changes or "base" in changes)


def _line_of(metadata: Mapping[str, Any]) -> str:
    """`README.md, line 3`: what a comment in the code is about."""
    path, line = metadata.get("path"), metadata.get("line")
    return f"{path}, line {line}" if path and line else str(path or "")


def _said(payload: Payload) -> str:
    for path in _SPOKEN:
        if fields.obj(payload, *path):
            return fields.text(payload, *path, "body")
    return ""


def _happening(event: str, metadata: Mapping[str, Any]) -> str:
    """`pull request closed in OWNER/REPO#2`."""
    action = metadata.get("action", "")
    words = f"{_WORDS.get(event, event)} {_WORDS.get(action, action)}".replace("_", " ").strip()
    place = metadata.get("repo") or metadata.get("organization") or ""
    if place and (number := metadata.get("number")):
        place = f"{place}#{number}"
    return f"{words} in {place}" if place else words


def _sentence(event: str, metadata: Mapping[str, Any]) -> str:
    """The happening and the details that tell it from others of its kind."""
    details = [f"{key.replace('_', ' ')}: {metadata[key]}" for key in _DETAILS if metadata.get(key)]
    if event == "pull_request" and metadata.get("action") == "closed":
        details.append("merged" if metadata.get("merged") else "not merged")
    happening = _happening(event, metadata)
    return f"{happening} ({', '.join(details)})" if details else happening


def _commits(payload: Payload, metadata: Mapping[str, Any]) -> str:
    """A push as a list: one line a commit, the oldest first."""
    lines = [_commit(entry) for entry in fields.items(payload, "commits")[:_LISTED_COMMITS]]
    total = fields.at(payload, "commits")
    if isinstance(total, list) and len(total) > _LISTED_COMMITS:
        lines.append(f"- and {len(total) - _LISTED_COMMITS} more")
    return "\n".join([_pushed(metadata), *lines])


def _commit(commit: object) -> str:
    first_line = fields.short(commit, "message").partition("\n")[0]
    return f"- {fields.text(commit, 'id')[:12]} {first_line}"


def _pushed(metadata: Mapping[str, Any]) -> str:
    deed = "deleted" if metadata.get("deleted") else "pushed to"
    place = metadata.get("branch") or metadata.get("tag") or metadata.get("ref") or "a ref"
    return f"{deed} {place} of {metadata.get('repo') or 'a repository'}"
