"""What a person would want to read of a GitLab delivery, and its facts as metadata."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from crewlet.sources import fields, gitlab_changes
from crewlet.sources import gitlab_rules as rules
from crewlet.sources.fields import Payload

_LISTED_COMMITS: Final = 20
_OLD_TIME: Final = re.compile(r"(\d{4}-\d\d-\d\d) (\d\d:\d\d:\d\d) UTC", re.ASCII)
_SIGNS: Final[Mapping[str, str]] = {"merge_request": "!", "epic": "&", "snippet": "$"}
_WORDS: Final[Mapping[str, str]] = {"build": "job", "note": "comment", "wiki_page": "wiki page"}
_DEEDS: Final[Mapping[str, str]] = {
    "open": "opened",
    "close": "closed",
    "reopen": "reopened",
    "update": "updated",
    "merge": "merged",
    "create": "created",
    "delete": "deleted",
    "approval": "approved by one",
    "unapproval": "no longer approved by one",
    "": "event",
}
_UNTOLD: Final = frozenset({"updated_at", "updated_by_id", "last_edited_at", "last_edited_by_id"})
_DETAILS: Final = ("status", "tag", "renamed_from")


def subject(payload: Payload, metadata: Mapping[str, Any]) -> str:
    """The title of the conversation, '' where nothing has one."""
    if rules.kind(payload) in ("push", "tag_push"):
        return _pushed(metadata)
    _, thing = rules.about(payload)
    named = (fields.short(payload, "object_attributes", "title"), fields.short(payload, "name"))
    return fields.first((fields.short(thing, "title"), *named))


def body(payload: Payload, metadata: Mapping[str, Any]) -> str:
    """The text that was written, '' where nothing was."""
    kind, thing = rules.kind(payload), fields.obj(payload, "object_attributes")
    if kind == "note":
        said, path = fields.text(thing, "note"), metadata.get("path")
        return f"On {path}:\n\n{said}" if said and path else said
    if kind in ("push", "tag_push"):
        return _commits(payload, metadata)
    if kind in rules.ITEMS and rules.opened(payload):
        return fields.text(thing, "description")
    if kind in rules.ITEMS and "description" in metadata.get("changed", ()):
        return f"{happening(metadata)}\n\n{fields.text(thing, 'description')}".strip()
    if kind == "wiki_page":
        return fields.text(thing, "content")
    return fields.text(payload, "description") if kind == "release" else ""


def superseded(payload: Payload) -> bool:
    """A later event makes this one's text stale: everything but what was said or opened."""
    kind = rules.kind(payload)
    return kind == "pipeline" or (kind in rules.ITEMS and not rules.opened(payload))


def occurrence(payload: Payload) -> str:
    """A new comment is one, through however many hooks of project, group and system it comes."""
    comment = fields.number(payload, "object_attributes", "id")
    new = rules.kind(payload) == "note" and rules.opened(payload)
    place = rules.identity(payload)
    return f"{place}:note:{comment}" if new and comment and place else ""


def metadata(hook: str, payload: Payload) -> dict[str, Any]:
    """The facts of a delivery: JSON values only, absent where the payload does not say."""
    return fields.stated(
        {
            "event": rules.kind(payload),
            "action": rules.action(payload) or fields.short(payload, "action"),
            "hook": hook,
            "repo": rules.project(payload) or _project_of_old(payload),
            "group": rules.group(payload),
            "number": rules.number(payload),
            "confidential": _confidential(payload),
            "timestamp": _timestamp(payload),
            **_item_facts(payload),
            **_change_facts(payload),
            **_git_facts(payload),
        }
    )


def happening(metadata: Mapping[str, Any]) -> str:
    """`merge request updated in octo/rocket!7 (reviewers: (none) → octo.qa)`."""
    kind, action = str(metadata.get("event", "")), str(metadata.get("action", ""))
    deed = _DEEDS.get(action, action) if action or kind in rules.ITEMS else ""
    words = f"{_WORDS.get(kind, kind)} {deed}".replace("_", " ").strip()
    place = str(metadata.get("repo") or metadata.get("group") or "")
    if place and (count := metadata.get("number")):
        about = str(metadata.get("about", ""))
        place += f"{_SIGNS.get(about, '#')}{count}"
    stated = [key for key in _DETAILS if metadata.get(key)]
    told = [f"{key.replace('_', ' ')}: {metadata[key]}" for key in stated]
    if kind in rules.ITEMS and not action and metadata.get("state"):
        told.append(f"state: {metadata['state']}")
    if metadata.get("new_commits"):
        told.append("new commits")
    told += metadata.get("changes", ())
    said = f"{words} in {place}" if place else words
    return f"{said} ({'; '.join(told)})" if told else said


def _item_facts(payload: Payload) -> dict[str, Any]:
    name, thing = rules.about(payload)
    attributes = fields.obj(payload, "object_attributes")
    draft = fields.flag(thing, "draft")
    return {
        "about": name,
        "url": fields.first((fields.short(attributes, "url"), fields.short(payload, "url"))),
        "state": fields.short(thing, "state"),
        "draft": fields.flag(thing, "work_in_progress") if draft is None else draft,
        "type": fields.short(thing, "type"),
        "head": fields.short(thing, "source_branch"),
        "base": fields.short(thing, "target_branch"),
        "assignees": fields.names(payload, ["assignees"], "username"),
        "reviewers": fields.names(payload, ["reviewers"], "username"),
        "labels": fields.names(payload, ["labels"], "title")
        or fields.names(thing, ["labels"], "title"),
        "noteable_type": fields.short(attributes, "noteable_type"),
        "comment_id": fields.number(attributes, "id") if rules.kind(payload) == "note" else None,
        "discussion": fields.short(attributes, "discussion_id"),
        "path": fields.short(attributes, "position", "new_path")
        or fields.short(attributes, "st_diff", "new_path"),
        "reaction": fields.short(attributes, "name") if rules.kind(payload) == "emoji" else "",
        "slug": fields.short(attributes, "slug"),
    }


def _change_facts(payload: Payload) -> dict[str, Any]:
    changes = fields.obj(payload, "changes")
    before = fields.names(changes, ["labels", "previous"], "title")
    after = fields.names(changes, ["labels", "current"], "title")
    old = fields.short(payload, "old_path_with_namespace")
    return {
        "changed": [name[:64] for name in list(changes)[:50] if name not in _UNTOLD],
        "changes": gitlab_changes.read(changes),
        "label": [name for name in (*after, *before) if (name in after) != (name in before)],
        "new_commits": bool(fields.short(payload, "object_attributes", "oldrev")) or None,
        "renamed_from": old,
    }


def _git_facts(payload: Payload) -> dict[str, Any]:
    what = rules.kind(payload)
    run = fields.obj(payload, "object_attributes") if what == "pipeline" else payload
    ref = fields.short(run, "ref")
    is_tag = ref.startswith("refs/tags/") or fields.flag(run, "tag") is True
    plain = ref.removeprefix("refs/heads/").removeprefix("refs/tags/")
    after = fields.short(payload, "after") or fields.short(run, "sha")
    return {
        "ref": ref,
        "branch": "" if is_tag else plain,
        "tag": plain if is_tag else fields.short(payload, "tag"),
        "sha": after,
        "created": _none(payload, "before"),
        "deleted": _none(payload, "after"),
        "commit": fields.short(payload, "commit", "id") if what == "note" else "",
        "status": fields.short(run, "status") or fields.short(payload, "build_status"),
        "job": fields.short(payload, "build_name"),
    }


def _none(payload: Payload, key: str) -> bool | None:
    """Whether a push comes from, or ends at, no commit at all."""
    sha = fields.short(payload, key)
    return not sha.strip("0") if sha else None


def _project_of_old(payload: Payload) -> str:
    """System and job events name their project in other places."""
    keys = ("path_with_namespace", "project_path_with_namespace", "project_name")
    return fields.first(fields.name(payload, key) for key in keys)


def _confidential(payload: Payload) -> bool | None:
    """Whether it is said where not everybody may read it; GitLab has a hook of its own for it."""
    named = fields.short(payload, "event_type").startswith("confidential_")
    _, thing = rules.about(payload)
    return True if named or fields.flag(thing, "confidential") else None


def _timestamp(payload: Payload) -> str:
    thing = fields.obj(payload, "object_attributes")
    for where, key in ((thing, "updated_at"), (thing, "finished_at"), (thing, "created_at")):
        if stated := _moment(where, key):
            return stated
    return _moment(payload, "updated_at") or _moment(payload, "created_at")


def _moment(payload: Payload, key: str) -> str:
    """GitLab writes times in two ways; the older one as the newer one."""
    match = _OLD_TIME.fullmatch(fields.short(payload, key))
    return f"{match[1]}T{match[2]}Z" if match else fields.moment(payload, key)


def _commits(payload: Payload, metadata: Mapping[str, Any]) -> str:
    """A push as a list: one line a commit, the oldest first."""
    lines = [_commit(entry) for entry in fields.items(payload, "commits")[:_LISTED_COMMITS]]
    total = fields.number(payload, "total_commits_count") or 0
    if total > len(lines):
        lines.append(f"- and {total - len(lines)} more")
    return "\n".join([_pushed(metadata), *lines])


def _pushed(metadata: Mapping[str, Any]) -> str:
    deed = "deleted" if metadata.get("deleted") else "pushed to"
    place = metadata.get("branch") or metadata.get("tag") or "a ref"
    return f"{deed} {place} of {metadata.get('repo') or 'a project'}"


def _commit(commit: object) -> str:
    first_line = fields.short(commit, "message").partition("\n")[0]
    return f"- {fields.text(commit, 'id')[:12]} {first_line}"
