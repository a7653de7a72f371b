"""A turn is charged to the work item that what woke it is about, or to none."""

from __future__ import annotations

from typing import Any

import pytest
from digests import VENDORS, own
from inbound_bench import START

from crewlet.events import catalogue as types
from crewlet.events.work_items import WorkItem
from crewlet.inbound.charging import NOTHING, Charge, charge_of
from crewlet.inbound.constituent import Constituent
from crewlet.sources import Notification

ITEM = WorkItem(backend="jira", id="POC-7", key="POC-7", project="POC")
CARRIED = {"backend": "jira", "id": "POC-7", "key": "POC-7", "project": "POC"}

pytestmark = pytest.mark.certifies(167)


def heard(identity: str, **metadata: Any) -> Constituent:
    told = {"conversation_identity": identity, **metadata}
    return Constituent(id="e", type=types.EXTERNAL_NOTIFICATION, timestamp=START, metadata=told)


def own_event(type: str, **metadata: Any) -> Constituent:
    return Constituent(id="e", type=type, timestamp=START, metadata=metadata)


@pytest.mark.parametrize(
    ("identity", "key", "project"),
    [
        ("jira:POC-7", "POC-7", "POC"),
        ("github:acme/rocket#7", "acme/rocket#7", "acme/rocket"),
        ("gitlab:acme/space/rocket!9", "acme/space/rocket!9", "acme/space/rocket"),
        ("gitlab:acme/rocket#7", "acme/rocket#7", "acme/rocket"),
        ("gitlab:acme&3", "acme&3", "acme"),
    ],
)
def test_what_people_number_is_an_item(identity: str, key: str, project: str) -> None:
    backend = identity.partition(":")[0]
    item = WorkItem(backend=backend, id=key, key=key, project=project)
    assert charge_of([heard(identity)]) == Charge(item, "trigger")


@pytest.mark.parametrize(
    "identity",
    [
        "",
        "github:acme/rocket@613b1a2",
        "gitlab:acme/rocket$53",
        "gitlab:acme/rocket/wiki/boot",
        "confluence:4711",
        "slack:C9:1718.001",
        "generic/deploys:7",
        "plane:775c5716-0000-4617-bb9f-2cd843911268",
        "jira:",
    ],
)
def test_what_is_only_talked_about_is_none(identity: str) -> None:
    assert charge_of([heard(identity)]) == NOTHING


def test_plane_says_which_of_its_ids_is_an_items_and_github_what_is_a_discussion() -> None:
    item = charge_of([heard("plane:u-1", work_item="u-1", project="p-1")])
    assert item == Charge(WorkItem(backend="plane", id="u-1", project="p-1"), "trigger")
    assert charge_of([heard("plane:u-1", page="u-1", project="p-1")]) == NOTHING
    assert charge_of([heard("github:acme/rocket#4", event="discussion_comment")]) == NOTHING


@pytest.mark.parametrize(
    ("type", "basis"),
    [
        (types.A2A_REQUEST, "asked_by"),
        (types.A2A_MESSAGE, "asked_by"),
        (types.RUN_COMPLETED, "resume"),
        (types.RUN_FAILED, "resume"),
    ],
)
def test_what_the_engine_carried_along_is_named_by_its_rule(type: str, basis: str) -> None:
    assert charge_of([own_event(type, work_item=CARRIED)]) == Charge(ITEM, basis)  # type: ignore[arg-type]
    for odd in (None, {}, [], "POC-7", {"backend": 1, "id": "x"}):
        assert charge_of([own_event(type, work_item=odd)]) == NOTHING


def test_nobody_outside_names_an_item_for_the_engine() -> None:
    assert charge_of([own_event(types.TASK_ASSIGNED, work_item=CARRIED)]) == NOTHING
    assert charge_of([heard("slack:C9", work_item=CARRIED)]) == NOTHING


def test_a_resumed_turn_is_charged_as_before_whatever_waited_with_it() -> None:
    ended = own_event(types.RUN_COMPLETED, work_item=CARRIED)
    assert charge_of([ended, heard("github:acme/rocket#7")]).basis == "resume"
    assert charge_of([own_event(types.RUN_COMPLETED), heard("jira:POC-7")]) == Charge(
        ITEM, "trigger"
    )


@pytest.mark.parametrize("vendor", VENDORS)
def test_all_deliveries_of_one_conversation_name_one_item(vendor: str) -> None:
    """Charged twice under two names, the cost of an item would be nobody's."""
    found: dict[str, set[str]] = {}
    for one in own(vendor):
        if isinstance(one, Notification) and one.conversation_identity:
            facts = {**one.metadata, "conversation_identity": one.conversation_identity}
            constituent = Constituent(
                id="e", type=types.EXTERNAL_NOTIFICATION, timestamp=START, metadata=facts
            )
            item = charge_of([constituent]).work_item
            found.setdefault(one.conversation_identity, set()).add(
                str(item and (item.id, item.key))
            )
    assert found
    assert {key: names for key, names in found.items() if len(names) > 1} == {}
