"""How a generic source is proved and read: what the company's file says of one, without secrets.

The edge puts the rule beside a delivery's headers, and it goes along with the delivery: whoever
reads it later, on whatever node, reads it by the rule under which it came.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal, TypeAlias, get_args

import msgspec
from msgspec import Struct

from crewlet.sources.content import header
from crewlet.sources.edge_facts import RULE

PREFIX: Final = "generic/"

ANYBODY: Final = "anybody"
"""The kind of contact behind a name of a generic source: a handle, a role's name, an e-mail
address."""

Verify: TypeAlias = Literal["hmac", "token"]
Algorithm: TypeAlias = Literal["sha256", "sha1", "sha512"]

PROOFS: Final[tuple[str, ...]] = get_args(Verify)
ALGORITHMS: Final[tuple[str, ...]] = get_args(Algorithm)
PATHS: Final = ("event", "sender", "subject", "conversation", "body", "addressed", "delivery")
"""The keys of a rule that hold paths."""


class Rule(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """`verify` is `hmac`: `header` is `prefix` and the hex of the HMAC of the exact bytes under
    `algorithm`; `token`: it is `prefix` and the secret itself. The rest are paths, empty where
    the file has none."""

    header: str
    verify: Verify = "hmac"
    prefix: str = ""
    algorithm: Algorithm = "sha256"
    event: str = ""
    sender: str = ""
    subject: str = ""
    conversation: str = ""
    body: str = ""
    addressed: str = ""
    delivery: str = ""


def written(rule: Rule) -> str:
    """The rule as the edge puts it beside the headers."""
    return msgspec.json.encode(rule).decode()


def rule_of(headers: Mapping[str, str]) -> Rule | None:
    """The rule of a delivery; None where none came with it."""
    try:
        return msgspec.json.decode(header(headers, RULE), type=Rule)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return None
