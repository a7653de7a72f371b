"""Verbs about revisions of the company: apply one, try one, look at those that there were."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct

from actors.admin import Caller, Refused
from crewlet.company import Company
from crewlet.coordination.store import Conflict
from crewlet.errors import ConfigError
from crewlet.node.reconcile import parsed
from crewlet.node.verbs.operation import AnyOperation, Nothing, Operation, Rows
from crewlet.node.view import NodeView
from crewlet.revisions.difference import Difference, difference
from crewlet.revisions.revision import SHORT, Revision, digest_of
from crewlet.revisions.store import Active

NAMED = 10
"""Seats that a note names; of more it says how many."""


class File(Struct, frozen=True, forbid_unknown_fields=True):
    """The text of a company file; `name` stands for it in messages."""

    text: str
    name: str = "company.yaml"


class Which(Struct, frozen=True, forbid_unknown_fields=True):
    """A revision by its number; none is the active one."""

    number: int | None = None


class Between(Struct, frozen=True, forbid_unknown_fields=True):
    """Two revisions; without `new` the active one, without `old` the one before that."""

    old: int | None = None
    new: int | None = None


class RevisionVerbs:
    """One coroutine a verb. Whoever is asked applies it: the others take it from the store."""

    def __init__(self, node: NodeView) -> None:
        self._node = node

    def table(self) -> Mapping[str, AnyOperation]:
        return {
            "apply": Operation(File, self.apply, target=lambda _: self._node.node_id),
            "revision.try": Operation(File, self.tried),
            "revision.ls": Operation(Nothing, self.list),
            "revision.show": Operation(Which, self.show),
            "revision.diff": Operation(Between, self.diff),
        }

    async def apply(self, args: File, caller: Caller) -> Rows:
        """Accepted and taken here; no turn is waited for, since a turn may be asking."""
        company, active = await self._checked(args)
        change = self._change(active, company)
        before = None if active is None else active.revision
        try:
            revision = await self._node.reconcile.apply(company, active, caller.user)
        except Conflict:
            raise Refused(
                "conflict",
                "somebody applied another revision meanwhile, and nothing was changed: look at "
                "`crewlet revision diff`, and say it again if you still mean it",
            ) from None
        yield self._answer(revision, change, changed=revision is not before)

    async def tried(self, args: File, caller: Caller) -> Rows:
        """Everything that `apply` would refuse, and what it would change; nothing is changed."""
        company, active = await self._checked(args)
        number = 1 if active is None else active.revision.number + 1
        change = self._change(active, company)
        same = active is not None and active.revision.digest == digest_of(company.source_text)
        note = "that is the active revision" if same else "nothing was changed: this is a trial"
        yield {
            "revision": number - 1 if same else number,
            "digest": digest_of(company.source_text)[:SHORT],
            "changed": False,
            "note": note,
            **_shown(change),
        }

    async def _checked(self, args: File) -> tuple[Company, Active | None]:
        """FileRefused lists all that is wrong with it, as `crewlet check` would on this node."""
        reconcile, own = self._node.reconcile, self._node.company.name
        company = reconcile.checked(args.text, args.name)
        if company.name != own:
            raise Refused(
                "other_company",
                f"this is {own!r}, and the file is of {company.name!r}: the ids of agents derive "
                "from the name, so that it cannot change; give another company a data folder or a "
                "broker of its own",
            )
        return company, await reconcile.revisions.active()

    def _change(self, active: Active | None, company: Company) -> Difference:
        """Against the active revision, or what this node has where it cannot be read here."""
        try:
            old = self._node.company if active is None else parsed(active.revision)
        except ConfigError:
            old = self._node.company
        return difference(old, company)

    def _answer(self, revision: Revision, change: Difference, *, changed: bool) -> dict[str, Any]:
        standing = self._node.reconcile.standing
        note = _note(change) if changed else "it is active already, and tried again where it failed"
        if not standing.is_at(revision):
            why = standing.reason or "its mailboxes cannot be made yet; it goes on trying"
            note = f"{self._node.node_id} does not work by it yet: {why}"
        return {
            "revision": revision.number,
            "digest": revision.digest[:SHORT],
            "changed": changed,
            "note": note,
            **_shown(change),
        }

    # -- looking ----------------------------------------------------------------------

    async def list(self, _: Nothing, caller: Caller) -> Rows:
        kept = await self._node.reconcile.revisions.all()
        for revision in reversed(kept):
            yield _row(revision, active=revision is kept[-1])

    async def show(self, args: Which, caller: Caller) -> Rows:
        kept = await self._node.reconcile.revisions.all()
        revision = _numbered(kept, args.number)
        row = _row(revision, active=revision is kept[-1])
        yield {**row, "company": revision.company, "text": revision.source_text}

    async def diff(self, args: Between, caller: Caller) -> Rows:
        kept = await self._node.reconcile.revisions.all()
        new = _numbered(kept, args.new)
        if args.old is None and new is kept[0]:
            way = f"`crewlet revision show {new.number}` prints it"
            raise Refused("not_found", f"no revision before {new.number} is kept: {way}")
        old = _numbered(kept, new.number - 1 if args.old is None else args.old)
        lines = difflib.unified_diff(
            old.source_text.splitlines(),
            new.source_text.splitlines(),
            f"revision {old.number}",
            f"revision {new.number}",
            lineterm="",
        )
        try:
            change = difference(parsed(old), parsed(new))
        except ConfigError:  # a variable that is gone: the text says it all the same
            change = Difference()
        yield {"old": old.number, "new": new.number, **_shown(change), "text": list(lines)}


def _numbered(kept: Sequence[Revision], number: int | None) -> Revision:
    if not kept:
        raise Refused("not_found", "nothing was applied yet: `crewlet apply FILE`")
    if number is None:
        return kept[-1]
    for revision in kept:
        if revision.number == number:
            return revision
    known = f"{kept[0].number} to {kept[-1].number}"
    raise Refused("not_found", f"there is no revision {number}; there are: {known}")


def _row(revision: Revision, *, active: bool) -> dict[str, Any]:
    return {
        "revision": revision.number,
        "active": active,
        "at": revision.at,
        "by": revision.by,
        "digest": revision.digest[:SHORT],
    }


def _shown(change: Difference) -> dict[str, Any]:
    seats = [f"{seat.handle}: {', '.join(seat.fields)}" for seat in change.changed]
    return {
        "added": change.added,
        "removed": change.removed,
        "seats": seats,
        "routes": change.routes,
        "integrations": change.integrations,
        "settings": change.settings,
    }


def _note(change: Difference) -> str:
    if not change:
        return "every node takes it up; it means the same as the one before"
    note = "every node takes it up with the next event"
    if change.removed:
        gone = ", ".join(change.removed[:NAMED])
        gone += f" and {len(change.removed) - NAMED} more" if len(change.removed) > NAMED else ""
        note += f"; the mail of {gone} is kept for 24 hours, then deleted"
    return note
