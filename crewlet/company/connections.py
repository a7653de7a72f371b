"""The integrations of a file are read: a secret each, an address, the rules of own senders."""

from __future__ import annotations

import re
from typing import Any, Final, cast
from urllib.parse import urlsplit

from crewlet.company.integrations import (
    GenericIntegration,
    Integration,
    Integrations,
    MattermostIntegration,
)
from crewlet.company.keys import VENDORS
from crewlet.company.problems import Report
from crewlet.company.record import Record
from crewlet.sources.generic_rule import PATHS, Algorithm, Rule, Verify
from crewlet.sources.paths import BadPath, takes_many

_HEADER: Final = re.compile(r"[A-Za-z0-9-]{1,64}")
_SINGLE: Final = ("event", "sender", "conversation", "delivery")


def read_integrations(record: Record, report: Report) -> Integrations:
    """All of `integrations`; what is wrong with them is reported."""
    integrations = record.record("integrations")
    if integrations is None:
        return Integrations()
    found = {vendor: integrations.record(vendor) for vendor in VENDORS}
    connected: dict[str, Any] = {
        vendor: Integration(secret=secret, lookup=each.line("lookup"))
        for vendor, each in found.items()
        if each and (secret := each.secret("secret"))
    }
    return Integrations(
        **connected,
        mattermost=_mattermost(integrations.record("mattermost"), report),
        generic={
            name: each
            for name, rule in integrations.named("generic").items()
            if (each := _generic(rule, report))
        },
    )


def _mattermost(record: Record | None, report: Report) -> MattermostIntegration | None:
    if record is None:
        return None
    url = record.line("url")
    if url and (fault := url_fault(url, "https://chat.octo.example")):
        report.add(*record.at("url"), f"{record.written('url')} {fault}")
    if record.has("url") != record.has("access_token"):
        key, other = ("url", "access_token") if record.has("url") else ("access_token", "url")
        report.add(*record.at(key), f"`{key}` needs `{other}` beside it: together they listen")
    if not record.has("secret") and not record.has("url"):
        report.add(
            record.mark,
            record.path,
            "one of `secret` (outgoing webhooks) and `url` (the websocket) is needed",
        )
    return MattermostIntegration(
        secret=record.secret("secret"), url=url, access_token=record.secret("access_token")
    )


def url_fault(url: str, example: str) -> str:
    """What is wrong with an address; empty where nothing is."""
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError:
        return "is no address"
    if parts.scheme not in ("http", "https") or not parts.hostname:
        return f"is no address; write it like {example}"
    if parts.username or parts.query or parts.fragment:
        return "holds more than a server and a path"
    return ""


def _generic(record: Record, report: Report) -> GenericIntegration | None:
    header = record.line("header")
    if header and _HEADER.fullmatch(header) is None:
        report.add(*record.at("header"), f"{record.written('header')} is no header's name")
    if record.line("verify") == "token" and record.has("algorithm"):
        report.add(*record.at("algorithm"), "a token has no algorithm; only hmac does")
    paths = {key: _path(record, key, report) for key in PATHS}
    secret = record.secret("secret")
    if secret is None:
        return None
    rule = Rule(
        header=header,
        verify=cast(Verify, record.line("verify") or "hmac"),
        prefix=record.line("prefix"),
        algorithm=cast(Algorithm, record.line("algorithm") or "sha256"),
        **paths,
    )
    return GenericIntegration(secret=secret, rule=rule)


def _path(record: Record, key: str, report: Report) -> str:
    """The path of a key, empty where it has none or a wrong one, which is reported."""
    path = record.line(key)
    if not path:
        return ""
    try:
        if takes_many(path) and key in _SINGLE:
            report.add(*record.at(key), f"{record.written(key)} leads to many; `{key}` is one")
    except BadPath as error:
        report.add(*record.at(key), f"{record.written(key)} is no path: {error}")
        return ""
    return path
