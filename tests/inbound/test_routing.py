"""Who is woken: the addressed, the followers and the routes; nobody else, and never the sender."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crewlet.company import Company, Contact, Route, Seat
from crewlet.inbound.phrases import NO_SEAT, RECIPIENT_IS_HUMAN
from crewlet.inbound.routing import Dropped, Recipient, Routing, recipients
from crewlet.sources import Notification

SEATS = (
    Seat(handle="dev", name="Developer", contact=Contact(github_login="octo-dev")),
    Seat(handle="ops", name="Operations", contact=Contact(github_login="OPS-Bot")),
    Seat(handle="ci", name="CI", contact=Contact(github_login="ci-bot[bot]")),
    Seat(handle="boss", name="Boss", kind="human", contact=Contact(github_login="the-boss")),
    Seat(handle="plain", name="Without accounts"),
    Seat(handle="odd", name="Odd", contact=Contact(github_login="unknown")),
)


def company(*routes: Route) -> Company:
    return Company(name="T", seats=SEATS, routes=routes)


def route(to: str, event: str = "github/issues.opened", **where: Any) -> Route:
    return Route(event=event, to=to, where=where)


def said(
    *addressed: str,
    sender: str = "someone",
    event: str = "issues.opened",
    verdict: str = "",
    metadata: Mapping[str, Any] | None = None,
    source: str = "github",
) -> Notification:
    return Notification(
        source=source,
        event_type=event,
        verdict=verdict or ("wake" if addressed else "follow"),  # type: ignore[arg-type]
        partition_key="github:acme/rocket#7",
        conversation_identity="github:acme/rocket#7",
        sender=sender,
        addressed=addressed,
        metadata=metadata or {},
    )


def woken(routing: Routing) -> list[tuple[str, str]]:
    return [(to.handle, to.why) for to in routing.wake]


@pytest.mark.certifies(124)
def test_the_addressed_then_the_followers_then_the_routes_each_once() -> None:
    routing = recipients(
        said("ops-bot", "octo-dev"), company(route("plain"), route("ci")), ["dev", "ci", "ops"]
    )
    assert woken(routing) == [
        ("ops", "addressed"),
        ("dev", "addressed"),
        ("ci", "follower"),
        ("plain", "route"),
    ]
    assert routing.skips == ()
    assert routing.joins == ("ops", "dev")


@pytest.mark.field("C13")
@pytest.mark.parametrize(
    ("login", "handle"),
    [("Octo-Dev", "dev"), ("OCTO-DEV", "dev"), ("ops-bot", "ops"), ("CI-bot[BOT]", "ci")],
)
def test_a_login_finds_its_seat_whatever_its_case(login: str, handle: str) -> None:
    assert woken(recipients(said(login), company())) == [(handle, "addressed")]


@pytest.mark.field("C13")
def test_an_own_act_wakes_nobody_and_is_no_skip() -> None:
    note = said("octo-dev", sender="OCTO-DEV")
    routing = recipients(note, company(route("dev")), ["dev"])
    assert routing.nobody


@pytest.mark.field("C13")
def test_a_bot_is_a_seat_only_if_its_login_is_configured_with_the_suffix() -> None:
    as_other = recipients(said(sender="ops-bot[bot]"), company(), ["ops", "ci"])
    assert woken(as_other) == [("ops", "follower"), ("ci", "follower")]
    as_itself = recipients(said(sender="ci-bot[bot]"), company(), ["ops", "ci"])
    assert woken(as_itself) == [("ops", "follower")]
    assert recipients(said("ci-bot"), company()).wake == ()


@pytest.mark.field("C31")
def test_the_unknown_sender_is_none_of_our_seats() -> None:
    routing = recipients(said(sender="unknown"), company(route("odd")), ["dev"])
    assert woken(routing) == [("dev", "follower"), ("odd", "route")]


@pytest.mark.certifies(126)
def test_a_human_is_skipped_with_the_phrase_and_never_woken() -> None:
    routing = recipients(said("the-boss", "octo-dev"), company(route("boss")), ["boss"])
    assert woken(routing) == [("dev", "addressed")]
    assert routing.skips == (Dropped("boss", RECIPIENT_IS_HUMAN, "as addressed"),)


@pytest.mark.certifies(127, 129)
def test_outsiders_are_recorded_once_and_only_where_nobody_is_woken() -> None:
    alone = recipients(said("stranger", "team:core", "other"), company())
    assert alone.wake == ()
    [skip] = alone.skips
    assert (skip.who, skip.reason) == ("stranger, team:core, other", NO_SEAT)
    assert "github_login" in skip.detail
    beside = recipients(said("stranger", "octo-dev"), company())
    assert woken(beside) == [("dev", "addressed")]
    assert beside.skips == ()


def test_a_long_list_of_outsiders_is_cut() -> None:
    [skip] = recipients(said(*(f"s{n}" for n in range(40))), company()).skips
    assert skip.who.endswith("s9 and 30 more")


@pytest.mark.certifies(129)
@pytest.mark.field("C31")
def test_a_removed_seat_is_a_skip_and_does_not_stop_the_others() -> None:
    routing = recipients(said(), company(route("gone"), route("plain")), ["left", "dev"])
    assert woken(routing) == [("dev", "follower"), ("plain", "route")]
    assert [(skip.who, skip.reason) for skip in routing.skips] == [
        ("left", NO_SEAT),
        ("gone", NO_SEAT),
    ]


@pytest.mark.parametrize("verdict", ["nothing", "lookup"])
def test_what_concerns_nobody_wakes_only_where_a_route_asks_for_it(verdict: str) -> None:
    note = said("octo-dev", verdict=verdict, event="push", metadata={"branch": "main"})
    assert recipients(note, company(), ["dev"]).nobody
    asked = company(route("ops", "github/push", branch="main"))
    assert woken(recipients(note, asked, ["dev"])) == [("ops", "route")]


def test_a_follow_wakes_nobody_as_addressed() -> None:
    assert recipients(said("octo-dev", verdict="follow"), company()).nobody


@pytest.mark.parametrize(
    ("event", "covered"),
    [
        ("github/issues.opened", True),
        ("github/issues.*", True),
        ("github/*", True),
        ("github/issues", False),
        ("github/issues.closed", False),
        ("gitlab/issues.opened", False),
        ("issues.opened", False),
    ],
)
def test_the_event_of_a_route(event: str, covered: bool) -> None:
    assert bool(recipients(said(), company(route("dev", event))).wake) == covered


FACTS = {
    "repo": "Acme/Rocket",
    "labels": ["bug", "P1"],
    "draft": False,
    "number": 7,
    "branch": "release/2.x",
}


@pytest.mark.parametrize(
    ("where", "passes"),
    [
        ({}, True),
        ({"repo": "acme/rocket"}, True),
        ({"repo": "acme/*"}, True),
        ({"repo": "acme/r?cket"}, True),
        ({"repo": "acme"}, False),
        ({"label": "BUG"}, True),
        ({"labels": "p?"}, True),
        ({"label": "feature"}, False),
        ({"label": ["feature", "bug"]}, True),
        ({"repo": "acme/rocket", "label": "feature"}, False),
        ({"draft": "false"}, True),
        ({"draft": False}, True),
        ({"draft": "true"}, False),
        ({"number": 7}, True),
        ({"number": "7"}, True),
        ({"branch": "release/*"}, True),
        ({"sender": "Renovate[bot]"}, True),
        ({"sender": "*[bot]"}, True),
        ({"sender": "renovate"}, False),
        ({"sender": "*[t]"}, False),
        ({"absent": "*"}, False),
        ({"absent": ""}, False),
    ],
)
def test_the_filters_of_a_route(where: Mapping[str, Any], passes: bool) -> None:
    note = said(sender="renovate[bot]", metadata=FACTS)
    asked = company(Route(event="github/*", to="dev", where=where))
    assert bool(recipients(note, asked).wake) == passes


def test_the_label_just_put_on_is_the_one_that_counts() -> None:
    note = said(event="issues.labeled", metadata={"label": "urgent", "labels": ["bug", "urgent"]})
    assert recipients(note, company(route("dev", "github/issues.labeled", label="urgent"))).wake
    assert recipients(note, company(route("dev", "github/issues.labeled", label="bug"))).nobody
    assert recipients(note, company(route("dev", "github/issues.labeled", labels="bug"))).wake


def test_a_source_without_accounts_wakes_followers_and_routes_only() -> None:
    note = said("octo-dev", sender="octo-dev", source="carrier-pigeon")
    routing = recipients(note, company(route("ops", "carrier-pigeon/*")), ["dev"])
    assert woken(routing) == [("dev", "follower"), ("ops", "route")]


LOGINS = st.sampled_from(
    ["octo-dev", "OCTO-dev", "ops-bot", "ci-bot[bot]", "the-boss", "stranger", "team:x", "unknown"]
)
HANDLES = st.sampled_from([*(seat.handle for seat in SEATS), "gone"])


@pytest.mark.certifies(124, 126)
@given(
    st.lists(LOGINS, max_size=6),
    LOGINS,
    st.lists(HANDLES, max_size=6),
    st.lists(HANDLES, max_size=4),
    st.sampled_from(["wake", "follow", "lookup", "nothing"]),
)
def test_nobody_else_never_the_sender_never_a_human_each_once(
    addressed: list[str], sender: str, followers: list[str], routed: list[str], verdict: str
) -> None:
    there = company(*(route(handle) for handle in routed))
    note = said(*addressed, sender=sender, verdict=verdict)
    routing = recipients(note, there, followers)
    called = {
        seat.handle for login in addressed if (seat := there.by_contact("github_login", login))
    }
    own = there.by_contact("github_login", sender) if sender != "unknown" else None
    handles = [to.handle for to in routing.wake]
    assert len(set(handles)) == len(handles)
    assert set(handles) <= called | set(followers) | set(routed)
    assert own is None or own.handle not in {*handles, *(skip.who for skip in routing.skips)}
    assert not {"boss", "gone"} & set(handles)
    assert routing == recipients(note, there, followers)
    assert routing.nobody == (not routing.wake and not routing.skips)
    if verdict == "nothing":
        assert all(isinstance(to, Recipient) and to.why == "route" for to in routing.wake)
