"""Senders of one's own: paths into their JSON, the proof, the reading, what is missing."""

from __future__ import annotations

import hashlib
import hmac
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crewlet import sources
from crewlet.company import check_text, parse_company
from crewlet.sources import Notification, Skip
from crewlet.sources.edge_facts import RULE
from crewlet.sources.generic_rule import Rule, written
from crewlet.sources.paths import BadPath, parse_path, values
from crewlet.sources.phrases import PARSER_REFUSED

SECRET = b"between the two of us"
NAME = "generic/deploys"
RULED = Rule(
    header="X-Signature",
    prefix="sha256=",
    event="event.type",
    sender="actor.name",
    subject="title",
    conversation="build.id",
    body="message.text",
    addressed="owners[*].email",
    delivery="id",
)
PAYLOAD: dict[str, Any] = {
    "id": "d-1",
    "event": {"type": "build failed"},
    "actor": {"name": "ann"},
    "title": "Build 7",
    "build": {"id": 7},
    "message": {"text": "It broke."},
    "owners": [{"email": "dev@octo.example"}, {"email": "ANN"}, {"name": "none"}],
}
BODY = json.dumps(PAYLOAD).encode()


def headers(rule: Rule = RULED, **more: str) -> dict[str, str]:
    return {"content-type": "application/json", RULE: written(rule), **more}


def read(payload: object, rule: Rule = RULED) -> Notification | Skip:
    [found] = sources.parse(NAME, headers(rule), json.dumps(payload).encode())
    return found


def notify(payload: object, rule: Rule = RULED) -> Notification:
    found = read(payload, rule)
    assert isinstance(found, Notification), found
    return found


# -- paths ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "steps"),
    [
        ("a", ("a",)),
        ("a.b.c", ("a", "b", "c")),
        ("a[0].b", ("a", 0, "b")),
        ("a[*].b", ("a", None, "b")),
        ("[1]", (1,)),
        ('["a.b"].c', ("a.b", "c")),
        ('a["x y"][2]', ("a", "x y", 2)),
        ("@type.$ref", ("@type", "$ref")),
        ("größe", ("größe",)),
    ],
)
def test_a_path_has_steps(path: str, steps: tuple[object, ...]) -> None:
    assert parse_path(path) == steps


@pytest.mark.parametrize(
    "path",
    ["", ".", "a.", ".a", "a..b", "a[", "a[]", "a[-1]", "a[x]", "a b", 'a["b]', "a]", "[*]a",
     "a['b']", "a[99999]", ".".join("abcdefghijklmnopq")],
)  # fmt: skip
def test_a_text_that_is_no_path_is_refused_with_a_sentence(path: str) -> None:
    with pytest.raises(BadPath, match="path"):
        parse_path(path)


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("build.id", [7]),
        ("owners[0].email", ["dev@octo.example"]),
        ("owners[*].email", ["dev@octo.example", "ANN"]),
        ("owners[9].email", []),
        ("owners.email", []),
        ("title.id", []),
        ("nothing.here", []),
        ("owners[*][*]", []),
    ],
)
def test_a_path_leads_somewhere_or_nowhere(path: str, found: list[object]) -> None:
    assert values(PAYLOAD, path) == found


@given(st.text(max_size=40))
def test_any_text_is_a_path_or_is_refused(text: str) -> None:
    try:
        steps = parse_path(text)
    except BadPath:
        return
    assert steps
    assert values(PAYLOAD, text) == values(PAYLOAD, text)


# -- proof ---------------------------------------------------------------------------------


@pytest.mark.certifies(131)
@pytest.mark.parametrize("algorithm", ["sha256", "sha1", "sha512"])
@pytest.mark.parametrize("prefix", ["", "sha=", "v1"])
def test_the_hmac_verifies_as_the_rule_says(algorithm: Any, prefix: str) -> None:
    rule = Rule(header="X-Signature", algorithm=algorithm, prefix=prefix)
    digest = hmac.new(SECRET, BODY, getattr(hashlib, algorithm)).hexdigest()
    for stated, right in (
        (prefix + digest, True),
        (f"{prefix} {digest}", True),
        (prefix + digest.upper(), False),
        (prefix + digest[:-1], False),
        ("", False),
        (prefix, False),
        (prefix + "é\udc80", False),
        ("other" + digest, False),
    ):
        sent = headers(rule, **{"x-signature": stated})
        assert sources.verify(NAME, sent, BODY, SECRET) is right
        assert not sources.verify(NAME, sent, BODY + b" ", SECRET)
        assert not sources.verify(NAME, sent, BODY, b"another")


@pytest.mark.certifies(131)
def test_the_token_verifies_as_the_rule_says() -> None:
    rule = Rule(header="Authorization", verify="token", prefix="Bearer")
    token = SECRET.decode()
    for stated, right in (
        (f"Bearer {token}", True),
        (f"Bearer{token}", True),
        (token, False),
        (f"Bearer {token}x", False),
        ("Bearer", False),
        ("", False),
    ):
        assert sources.verify(NAME, headers(rule, authorization=stated), BODY, SECRET) is right


@pytest.mark.parametrize("verify", ["hmac", "token"])
def test_an_empty_secret_and_a_lost_rule_verify_nothing(verify: Any) -> None:
    rule = Rule(header="X-Signature", verify=verify)
    digest = hmac.new(b"", BODY, hashlib.sha256).hexdigest()
    for stated in ("", digest):
        assert not sources.verify(NAME, headers(rule, **{"x-signature": stated}), BODY, b"")
    assert not sources.verify(NAME, {"x-signature": digest}, BODY, b"")
    assert not sources.verify(NAME, {RULE: "{"}, BODY, SECRET)


# -- reading -------------------------------------------------------------------------------


@pytest.mark.certifies(110, 118)
def test_a_payload_is_read_by_the_rule() -> None:
    found = notify(PAYLOAD)
    assert (found.source, found.event_type) == (NAME, "build_failed")
    assert found.partition_key == found.conversation_identity == "generic/deploys:7"
    assert (found.sender, found.addressed) == ("ann", ("dev@octo.example",))
    assert (found.subject, found.body, found.verdict) == ("Build 7", "It broke.", "wake")
    assert found.metadata == {"event": "build_failed", "conversation": "7"}
    assert sources.delivery_key(NAME, headers(), BODY) == "d-1"


def test_a_rule_without_paths_reads_any_json() -> None:
    rule = Rule(header="X-Token", verify="token")
    for payload in (PAYLOAD, [], 7, None, "x"):
        found = notify(payload, rule)
        assert (found.event_type, found.verdict, found.sender) == ("event", "nothing", "unknown")
        assert (found.partition_key, found.body) == ("", "event from deploys")
        assert sources.key_of(NAME, headers(rule), payload) == ""


@pytest.mark.parametrize("missing", ["event", "build"])
def test_a_payload_without_its_event_or_conversation_is_skipped_with_the_path(
    missing: str,
) -> None:
    payload = {key: value for key, value in PAYLOAD.items() if key != missing}
    skip = read(payload)
    assert isinstance(skip, Skip)
    assert skip.reason == PARSER_REFUSED
    assert ("event.type" if missing == "event" else "build.id") in skip.detail


@pytest.mark.parametrize("missing", ["actor", "title", "message", "owners", "id"])
def test_what_else_is_missing_is_recorded_with_its_path(missing: str) -> None:
    payload = {key: value for key, value in PAYLOAD.items() if key != missing}
    found = notify(payload)
    [told] = found.metadata["missing"]
    assert "nothing stands at" in told
    assert (found.subject or missing == "title") and found.body and found.sender


@pytest.mark.parametrize("value", [None, [], {}, 1.5, "", " ", "x" * 300, "a\nb", "\u0000"])
def test_a_name_that_is_none_is_missing(value: object) -> None:
    assert isinstance(read({**PAYLOAD, "build": {"id": value}}), Skip)
    assert isinstance(read({**PAYLOAD, "event": {"type": value}}), Skip | Notification)
    assert notify({**PAYLOAD, "actor": {"name": value}}).sender == "unknown"


def test_a_list_of_names_is_as_good_as_its_entries() -> None:
    rule = Rule(header="X-Signature", addressed="to", sender="from")
    found = notify({"to": ["dev", "OPS", "dev", {"a": 1}, None, 7], "from": "ops"}, rule)
    assert found.addressed == ("dev", "7")


def test_a_delivery_without_its_rule_is_a_skip() -> None:
    for sent in ({}, {RULE: "{"}, {RULE: written(Rule(header="X", event="a..b"))}):
        [skip] = sources.parse(NAME, sent, BODY)
        assert isinstance(skip, Skip)
        assert (skip.source, skip.reason) == (NAME, PARSER_REFUSED)


def test_the_rule_goes_along_and_holds_no_secret() -> None:
    assert RULE in sources.kept_headers(NAME)
    assert SECRET.decode() not in written(RULED)


# -- the company's file --------------------------------------------------------------------

FILE = """\
name: Octo
roles: [{name: Dev, handle: dev, email: dev@octo.example}, {name: Ops}]
routes: [{event: %s, to: ops}]
integrations:
  generic:
    deploys:
      secret: ${SECRET}
      header: X-Signature
      %s
"""
ENV = {"SECRET": SECRET.decode()}


def problems(extra: str, event: str = "generic/deploys/failed") -> list[str]:
    return [str(problem) for problem in check_text(FILE % (event, extra), env=ENV)]


def test_a_source_of_the_file_is_read_with_its_rule() -> None:
    text = FILE % ("generic/deploys/failed", "event: event.type")
    company = parse_company(text, env=ENV)
    integration = company.integrations.of(NAME)
    assert integration is not None and integration.secret is not None
    assert integration.secret.reveal().encode() == SECRET
    assert company.integrations.generic["deploys"].rule.event == "event.type"
    assert company.integrations.of("generic") is None
    assert company.integrations.of("generic/other") is None
    assert SECRET.decode() in company.integrations.secrets()
    [route] = company.routes
    assert route.covers(NAME, "failed")


@pytest.mark.certifies(124)
def test_names_of_a_source_of_ones_own_are_found_by_handle_role_and_mail() -> None:
    company = parse_company(FILE % ("generic/*", ""), env=ENV)
    kind = sources.contact_kind(NAME)
    for name in ("dev", "Dev", "DEV@octo.example"):
        seat = company.by_contact(kind, name)
        assert seat is not None and seat.handle == "dev"
    for name in ("", " ", "nobody", "other@octo.example"):
        assert company.by_contact(kind, name) is None


@pytest.mark.parametrize("key", ["event", "sender", "subject", "conversation", "body", "delivery"])
def test_a_bad_path_is_refused_with_its_line(key: str) -> None:
    [problem] = problems(f"{key}: a..b")
    assert problem.startswith(f"company.yaml:9:{len(key) + 9}: integrations.generic.deploys.{key}")
    assert "is no path" in problem


@pytest.mark.parametrize(
    ("extra", "said"),
    [
        ("event: a[*].b", "leads to many"),
        ("conversation: a[*]", "leads to many"),
        ("verify: none", "hmac or token"),
        ("algorithm: md5", "sha256 or sha1 or sha512"),
        ("verify: token\n      algorithm: sha1", "a token has no algorithm"),
        ("header: X Y", "twice"),
        ("evnt: a", "did you mean 'event'?"),
    ],
)
def test_a_rule_that_makes_no_sense_is_refused(extra: str, said: str) -> None:
    assert said in "\n".join(problems(extra))


@pytest.mark.parametrize(
    "event", ["generic/failed", "generic/other/failed", "github/deploys/failed", "generic/"]
)
def test_a_route_has_to_name_a_source_that_is_there(event: str) -> None:
    assert len(problems("", event)) == 1


@pytest.mark.parametrize("event", ["generic/*", "generic/deploys/*", "generic/deploys/a.b*"])
def test_a_route_may_name_many_events(event: str) -> None:
    assert problems("", event) == []


@pytest.mark.parametrize("name", ["A", "a b", "", "a/b", "x" * 64, "-a"])
def test_a_name_that_no_path_could_have_is_refused(name: str) -> None:
    text = f"name: O\nroles: [name: A]\nintegrations: {{generic: {{{json.dumps(name)}: {{}}}}}}"
    assert any("is no name" in str(problem) for problem in check_text(text, env=ENV))


@pytest.mark.parametrize(
    ("block", "said"),
    [
        ("{}", "is needed"),
        ("{url: https://c.example}", "`access_token` beside it"),
        ("{access_token: '${SECRET}'}", "`url` beside it"),
        ("{url: c.example, access_token: '${SECRET}'}", "is no address"),
        ("{url: 'wss://c.example', access_token: '${SECRET}'}", "is no address"),
        ("{url: 'https://u:p@c.example', access_token: '${SECRET}'}", "more than a server"),
        ("{url: 'https://c.example:x', access_token: '${SECRET}'}", "is no address"),
        ("{secret: plain}", "a secret is not written into the file"),
    ],
)
def test_mattermost_needs_a_hook_or_a_socket(block: str, said: str) -> None:
    text = f"name: O\nroles: [name: A]\nintegrations: {{mattermost: {block}}}"
    assert said in "\n".join(str(problem) for problem in check_text(text, env=ENV))


@pytest.mark.parametrize(
    "block", ["{secret: '${SECRET}'}", "{url: 'https://c.example/x', access_token: '${SECRET}'}"]
)
def test_mattermost_may_have_either(block: str) -> None:
    text = f"name: O\nroles: [name: A]\nintegrations: {{mattermost: {block}}}"
    company = parse_company(text, env=ENV)
    assert company.integrations.secrets() == [SECRET.decode()]
    assert SECRET.decode() not in repr(company.integrations)


def test_each_of_several_hooks_tokens_is_a_secret() -> None:
    text = "name: O\nroles: [name: A]\nintegrations: {mattermost: {secret: '${SECRET}, other'}}"
    secrets = parse_company(text, env=ENV).integrations.secrets()
    assert secrets == [f"{SECRET.decode()}, other", SECRET.decode(), "other"]
