"""What Jira and Confluence have in common: how a delivery is proved, and who somebody is."""

from __future__ import annotations

from collections.abc import Mapping

from crewlet.sources import fields
from crewlet.sources.content import header
from crewlet.sources.edge_facts import URL_PROOF
from crewlet.sources.proofs import is_token, signed


def verified(headers: Mapping[str, str], body: bytes, secret: bytes) -> bool:
    """X-Hub-Signature over exactly these bytes; without that header the `token` of the URL.

    Older servers, Connect and Forge sign no body. A signature that is there and wrong is not
    made good by a token. The JWT of Connect and Forge is not looked at: it covers no body.
    """
    stated = header(headers, "X-Hub-Signature")
    if stated:
        return signed(stated, body, secret)
    return is_token(header(headers, URL_PROOF), secret)


def person(payload: object, *path: str) -> tuple[str, ...]:
    """Every name of a person: the account id first; a server of one's own has none of these."""
    keys = ("accountId", "name", "key")
    return tuple(found for key in keys if (found := fields.name(payload, *path, key)))
