"""What a node knows of its fleet: a prefix of what was written, and since when it is silent."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from actors.machines.fleet_view import FleetView, Standing
from actors.machines.timing import TTL, Timing
from actors.tenure import MAIL_OUT, Lease

TIMING = Timing()
NODES = ("a", "b")
SEATS = ("seat:s0", "seat:s1", "worker:w")
thorough = settings(derandomize=True, max_examples=300, deadline=None)

ACTS = st.tuples(
    st.sampled_from(["begin", "renew", "end", "about", "take", "release"]),
    st.sampled_from(NODES),
    st.sampled_from(SEATS),
)


def history(acts: list[tuple[str, str, str]]) -> list[Lease]:
    """What an honest store would hold: every row written, in the order of revisions."""
    rows: dict[str, Lease] = {}
    log: list[Lease] = []

    def write(row: Lease) -> None:
        log.append(replace(row, revision=len(log) + 1))
        rows[row.resource] = log[-1]

    for act, node, resource in acts:
        name = f"node:{node}"
        session, held = rows.get(name), rows.get(resource)
        stands = session is not None and not session.released
        if act == "begin" and not stands:
            epoch = (session.epoch if session else 0) + 1
            owner = f"{node}:{epoch}"
            write(Lease(resource=name, owner=owner, node=node, epoch=epoch, session=epoch))
        elif session and stands and act in ("renew", "end"):
            write(replace(session, released=act == "end"))
        elif session and stands and act == "about":
            write(replace(session, about={"leaving": "1"}))
        elif session and stands and act == "take" and free(held, rows):
            epoch = (held.epoch if held else 0) + 1
            write(
                Lease(
                    resource=resource,
                    owner=session.owner,
                    node=node,
                    epoch=epoch,
                    session=session.epoch,
                )
            )
        elif held and held.node == node and act == "release" and not free(held, rows):
            write(replace(held, released=True))
    return log


def free(held: Lease | None, rows: dict[str, Lease]) -> bool:
    """Released, or its session has ended or was followed by another."""
    if held is None or held.released:
        return True
    session = rows[f"node:{held.node}"]
    return session.epoch > held.session or session.released


def heard(log: list[Lease], now: float = 0.0) -> FleetView:
    view = FleetView(TIMING)
    for row in log:
        view.saw(row, now)
    return view


@pytest.mark.certifies(272)
@thorough
@given(st.lists(ACTS, max_size=40), st.integers(0, 40))
def test_a_seat_is_free_exactly_when_no_session_holds_it(
    acts: list[tuple[str, str, str]], most: int
) -> None:
    log = history(acts)[:most]  # any prefix
    rows = {row.resource: row for row in log}
    view = heard(log)
    for now, held in ((19.9, Standing.HELD), (20.0, Standing.SILENT)):
        for resource in SEATS:
            row = rows.get(resource)
            is_free = free(row, rows)
            assert view.standing(resource, now) is (Standing.FREE if is_free else held)
            assert view.holder(resource, now) == ("" if is_free or row is None else row.node)
        for node in NODES:
            session = rows.get(f"node:{node}")
            stands = session is not None and not session.released
            assert view.is_live(node, now) == (stands and held is Standing.HELD)
            assert (session in view.to_end(now)) == (stands and held is Standing.SILENT)
            mine = [
                s.removeprefix("seat:")
                for s in SEATS
                if s.startswith("seat:") and view.holder(s, now) == node
            ]
            assert view.seats_of(node, now) == mine


@thorough
@given(st.lists(ACTS, max_size=40), st.data())
def test_rows_that_are_heard_again_change_nothing(
    acts: list[tuple[str, str, str]], data: st.DataObject
) -> None:
    """After a gap everything is heard again; an old row never undoes a newer one, and only a new
    one is a sign of life."""
    log = history(acts)
    view = heard(log)
    before = (view.sessions(), view.rows(), view.next_silence())
    for row in data.draw(st.lists(st.sampled_from(log), max_size=20)) if log else []:
        assert not view.saw(row, 10.0)
    assert (view.sessions(), view.rows(), view.next_silence()) == before


@thorough
@given(st.lists(ACTS, max_size=40))
def test_news_is_whatever_is_more_than_a_renewal(acts: list[tuple[str, str, str]]) -> None:
    view = FleetView(TIMING)
    known: dict[str, Lease] = {}
    for row in history(acts):
        last = known.get(row.resource)
        renewal = last is not None and replace(last, revision=row.revision) == row
        assert view.saw(row, 0.0) != (renewal and row.resource.startswith("node:"))
        known[row.resource] = row


@thorough
@given(st.lists(st.tuples(st.sampled_from(NODES), st.floats(0.1, 15)), max_size=12))
def test_a_session_is_silent_a_ttl_after_it_was_last_seen_renewed(
    renewals: list[tuple[str, float]],
) -> None:
    view = FleetView(TIMING)
    now, revision, last = 0.0, 0, dict.fromkeys(NODES, 0.0)
    for node in NODES:
        revision += 1
        view.saw(session_of(node, revision), now)
    for node, after in renewals:
        now, revision = now + after, revision + 1
        if now < last[node] + 20:
            last[node] = now
            view.saw(session_of(node, revision), now)
    assert view.next_silence() == min(last.values()) + 20
    for node in NODES:
        assert view.is_live(node, last[node] + 19.99)
        assert not view.is_live(node, last[node] + 20)


def session_of(node: str, revision: int, **words: object) -> Lease:
    row = Lease(
        resource=f"node:{node}",
        owner=f"{node}:1",
        node=node,
        epoch=1,
        session=1,
        revision=revision,
    )
    return replace(row, **words)


def test_a_session_that_states_a_longer_ttl_is_waited_for() -> None:
    view = heard([session_of("a", 1, about={TTL: "45"})])
    assert view.is_live("a", 44.9) and not view.to_end(44.9)
    assert [lease.node for lease in view.to_end(45.0)] == ["a"]


def test_an_ended_session_is_nobodys_to_end_again() -> None:
    view = heard([session_of("a", 1, released=True)])
    assert view.to_end(1e9) == [] and view.next_silence() == float("inf")


def test_a_seat_whose_session_was_not_heard_of_is_not_taken_for_free() -> None:
    row = Lease(resource="seat:s", owner="x:1", node="x", epoch=1, session=1, revision=1)
    view = heard([row])
    assert view.standing("seat:s", 0.0) is Standing.HELD


@pytest.mark.parametrize("epoch", [1, 6])
def test_a_seat_taken_after_the_rows_were_taken_away_is_not_free_for_its_session_is_not_heard_yet(
    epoch: int,
) -> None:
    """Sessions count from one again then, or their nodes write them as they were."""
    view = heard([replace(session_of("a", 1), epoch=6)])
    view.saw(Lease(resource="node:a", owner="", node="a", epoch=0, session=0, revision=2), 0.0)
    later = 10 * TIMING.ttl_s
    row = Lease(resource="seat:s", owner="a:7", node="a", epoch=1, session=epoch, revision=3)
    view.saw(row, later)
    assert view.standing("seat:s", later) is Standing.HELD
    assert view.standing("seat:s", 2 * later) is Standing.HELD
    view.saw(replace(session_of("a", 4), epoch=epoch, session=epoch), 2 * later)
    assert view.standing("seat:s", 2 * later) is Standing.HELD
    view.saw(replace(session_of("a", 5), epoch=epoch, session=epoch, released=True), 2 * later)
    assert view.standing("seat:s", 2 * later) is Standing.FREE


@pytest.mark.parametrize("known", [{"epoch": 6}, {"epoch": 1, "released": True}])
def test_a_session_that_is_older_than_a_seat_s_row_says_for_a_ttl_nothing_of_it(
    known: dict[str, int],
) -> None:
    """Neither the wipe nor the reboot was heard: what is known of the node ended before the seat
    was taken, under a session that counts from one again."""
    view = heard([replace(session_of("a", 2), **known)])
    row = Lease(resource="seat:s", owner="a:7", node="a", epoch=1, session=1, revision=5)
    later = 10 * TIMING.ttl_s
    view.saw(row, later)
    assert view.standing("seat:s", later) is Standing.SILENT
    assert view.holder("seat:s", later) == "a"
    view.saw(session_of("a", 4), later + 1)
    assert view.standing("seat:s", later + 1) is Standing.HELD


def test_a_zombie_s_claim_is_free_after_a_ttl_or_once_the_session_after_it_is_renewed() -> None:
    """It landed after its session was over, whatever is heard of its node later."""
    row = Lease(resource="seat:s", owner="a:1", node="a", epoch=1, session=1, revision=5)
    after = replace(session_of("a", 4), epoch=2, session=2)
    view = heard([after, row])
    assert view.standing("seat:s", TIMING.ttl_s - 0.1) is Standing.SILENT
    assert view.standing("seat:s", TIMING.ttl_s) is Standing.FREE
    view = heard([after, row])
    view.saw(replace(after, revision=6), 5.0)
    assert view.standing("seat:s", 5.0) is Standing.FREE


def test_who_did_not_let_go_in_order_left_mail_out() -> None:
    row = Lease(resource="seat:s", owner="a:1", node="a", epoch=1, session=1, revision=1)
    view = heard([])
    assert view.died("seat:s")  # nobody knows what was there before
    for revision, (words, died) in enumerate(
        (
            ({}, True),
            ({"released": True}, False),
            ({"released": True, "about": {MAIL_OUT: "75.000"}}, True),
        ),
        start=1,
    ):
        view.saw(replace(row, revision=revision, **words), 0.0)
        assert view.died("seat:s") is died
