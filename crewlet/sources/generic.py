"""Any sender of JSON that the company's file describes: proved and read by that rule."""

from __future__ import annotations

import hmac
import re
from collections.abc import Mapping
from typing import Any, Final

from crewlet.sources import fields
from crewlet.sources.chat import distinct
from crewlet.sources.content import decode, header
from crewlet.sources.edge_facts import RULE
from crewlet.sources.generic_rule import ANYBODY, PREFIX, Rule, rule_of
from crewlet.sources.notification import Notification, Parsed, Skip
from crewlet.sources.paths import BadPath, values
from crewlet.sources.phrases import PARSER_REFUSED
from crewlet.sources.proofs import is_token

UNKNOWN: Final = "unknown"
EVENT: Final = "event"
"""The type of every event of a source whose rule has no path to one."""

_NO_TYPE: Final = re.compile(r"[^A-Za-z0-9_.:-]+")
_MAX_NAME: Final = 200


class Generic:
    """The source named `generic/NAME`. The rule comes with each delivery, in `:rule`."""

    contact: Final = ANYBODY
    kept: Final = (RULE,)

    def __init__(self, name: str) -> None:
        self.name: Final = name

    def verify(self, headers: Mapping[str, str], body: bytes, secret: bytes) -> bool:
        """Whether the rule's header holds the HMAC of exactly these bytes, or the token."""
        rule = rule_of(headers)
        if rule is None or not secret:
            return False
        stated = header(headers, rule.header)
        if not stated.startswith(rule.prefix):
            return False
        stated = stated.removeprefix(rule.prefix).strip()
        if rule.verify == "token":
            return is_token(stated, secret)
        digest = hmac.new(secret, body, rule.algorithm).hexdigest()
        return hmac.compare_digest(stated.encode("utf-8", "replace"), digest.encode())

    def delivery_key(self, headers: Mapping[str, str]) -> str:
        """None: a rule names a path, and `payload_key` needs the headers for it."""
        return ""

    def payload_key(self, headers: Mapping[str, str], payload: object) -> str:
        """What stands at the rule's path `delivery`."""
        rule = rule_of(headers)
        try:
            return _one(payload, rule.delivery) if rule else ""
        except BadPath:
            return ""

    def decode(self, headers: Mapping[str, str], body: bytes) -> Any:
        """The JSON value. Raises Unreadable."""
        return decode(headers, body)

    def parse(self, headers: Mapping[str, str], payload: object) -> list[Parsed]:
        """What the rule finds. Without an event's type or its conversation it is a skip, where
        the rule has a path to it; what else is missing stands in the metadata."""
        rule = rule_of(headers)
        if rule is None:
            return [self._refused("", "the delivery came without the rule to read it by")]
        try:
            return [self._read(rule, payload)]
        except BadPath as error:  # a rule is checked before it gets here
            return [self._refused("", f"the rule holds a bad path: {error}")]

    def _read(self, rule: Rule, payload: object) -> Parsed:
        event = _NO_TYPE.sub("_", _one(payload, rule.event)).strip("_") if rule.event else EVENT
        if not event:
            return self._refused("", f"no event's type stands at {rule.event}")
        conversation = _one(payload, rule.conversation)
        if rule.conversation and not conversation:
            return self._refused(event, f"no conversation's name stands at {rule.conversation}")
        key = f"{self.name}:{conversation}" if conversation else ""
        sender = _one(payload, rule.sender) or UNKNOWN
        names = _names(payload, rule.addressed)
        addressed = distinct(names, sender)
        subject = _text(payload, rule.subject)[: fields.MAX_TEXT]
        happened = f"{event} from {self.name.removeprefix(PREFIX)}"
        return Notification(
            source=self.name,
            event_type=event,
            verdict="wake" if addressed else "follow" if key else "nothing",
            partition_key=key,
            conversation_identity=key,
            sender=sender,
            addressed=addressed,
            subject=subject,
            body=_text(payload, rule.body) or happened,
            metadata=_metadata(rule, event, conversation, _missing(rule, payload)),
        )

    def _refused(self, event: str, detail: str) -> Skip:
        return Skip(source=self.name, event_type=event, reason=PARSER_REFUSED, detail=detail)


def _metadata(rule: Rule, event: str, conversation: str, missing: list[str]) -> dict[str, Any]:
    told = [f"{key}: nothing stands at {getattr(rule, key)}" for key in missing]
    return fields.stated({"event": event, "conversation": conversation, "missing": told})


def _missing(rule: Rule, payload: object) -> list[str]:
    """The optional keys of the rule whose paths lead nowhere in this payload."""
    optional = ("sender", "subject", "body", "addressed", "delivery")
    return [key for key in optional if (path := getattr(rule, key)) and not values(payload, path)]


def _text(payload: object, path: str) -> str:
    """The text at a path in full; several are lines."""
    return "\n".join(filter(None, map(_written, values(payload, path)))) if path else ""


def _one(payload: object, path: str) -> str:
    """The name or number at a path, '' where it is none."""
    return next(iter(_names(payload, path)), "") if path else ""


def _names(payload: object, path: str) -> list[str]:
    """The names at a path; a list of texts is as good as its entries."""
    if not path:
        return []
    found: list[object] = []
    for value in values(payload, path):
        found += value[: fields.MAX_ITEMS] if isinstance(value, list) else [value]
    written = [_written(value).strip() for value in found[: fields.MAX_ITEMS]]
    return [name for name in written if name and len(name) <= _MAX_NAME and name.isprintable()]


def _written(value: object) -> str:
    """A text, a whole number or true and false as JSON writes them; '' of anything else."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value) if abs(value) < 2**63 else ""
    return value if isinstance(value, str) else ""
