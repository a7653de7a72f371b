"""Faults between a vendor's delivery and the seats that it wakes."""

from __future__ import annotations

import asyncio
import itertools
from typing import Any

from crewlet.coordination.store import CLAIMS
from crewlet.inbound import drained, ids, router
from crewlet.inbound.followers import Followers, Seen
from crewlet.inbound.router import Router
from crewlet.inbound.routing import Routing
from tests.mutants.catalogue.cases import inbound
from tests.mutants.mutant import Patches, Tier

TIER = Tier("router")


@TIER.fault(
    inbound("router.py::test_a_recipient_that_fails_blocks_no_other_and_comes_again"),
    lines=(129,),
)
def claimed_before_the_wakes(patch: Patches) -> None:
    """A delivery is claimed as it comes: what fails after that wakes nobody."""
    route = Router._route

    async def claim(service: Router, event: Any, raw: Any, parsed: Any) -> Any:
        await service._store.put(CLAIMS, router._claim(raw), event.id.encode())
        return await route(service, event, raw, parsed)

    patch.set(Router, "_route", claim)


@TIER.fault(
    inbound("router.py::test_a_second_pass_publishes_nothing_that_was_not_published_before"),
    lines=(130,),
)
def wakes_have_fresh_ids(patch: Patches) -> None:
    """A crash between the wakes and the claim wakes everybody again."""
    number = itertools.count()

    def fresh(*parts: object) -> str:
        return ids.derived_id(*parts, next(number))

    patch.set(router, "derived_id", fresh)


@TIER.fault(
    inbound("router.py::test_a_vendors_retry_on_another_node_wakes_nobody_a_second_time"),
    lines=(130,),
)
def claims_are_not_asked_for(patch: Patches) -> None:
    """A vendor that repeats a delivery after minutes wakes its seats a second time."""

    async def never(service: Router, event: Any, raw: Any) -> bool:
        return False

    patch.set(Router, "_routed_before", never)


@TIER.fault(
    inbound("router.py::test_a_recipient_that_fails_blocks_no_other_and_comes_again"),
    lines=(129,),
)
def one_failed_wake_stops_the_rest(patch: Patches) -> None:
    """The first inbox that cannot be written to keeps the others from being woken."""
    reach = Router._reach
    failed: list[str] = []
    one = asyncio.Lock()

    async def or_none(
        service: Router, event: Any, index: int, found: Any, recipient: Any, delivery: str
    ) -> str | None:
        async with one:
            if failed:
                return failed[0]
            failure = await reach(service, event, index, found, recipient, delivery)
            failed.extend([failure] if failure else [])
            return failure

    patch.set(Router, "_reach", or_none)


@TIER.fault(inbound("router.py::test_followers_that_are_unknown_are_not_nobody"), lines=(129,))
def unknown_followers_are_nobody(patch: Patches) -> None:
    """A store that does not answer counts as a conversation that nobody follows."""
    look, joined = Followers.look, Followers.joined

    async def nobody(followers: Followers, identity: str, *, at: Any) -> Any:
        try:
            return await look(followers, identity, at=at)
        except router.StoreUnavailable:
            return Seen()

    async def in_vain(
        followers: Followers, identity: str, seats: Any, *, at: Any, seen: Any = None
    ) -> None:
        try:
            await joined(followers, identity, seats, at=at, seen=seen)
        except router.StoreUnavailable:
            return

    patch.set(Followers, "look", nobody)
    patch.set(Followers, "joined", in_vain)


@TIER.fault(
    inbound("router.py::test_whoever_was_meant_and_is_not_woken_is_on_the_record"), lines=(127,)
)
def drops_are_silent(patch: Patches) -> None:
    """Whoever was meant and is not woken stands nowhere: nobody learns of a wrong handle."""
    recipients = router.recipients

    def woken_only(notification: Any, company: Any, followers: Any = ()) -> Routing:
        return Routing(wake=recipients(notification, company, followers).wake)

    patch.set(router, "recipients", woken_only)


@TIER.fault(inbound("router.py::test_the_company_is_read_anew_for_each_delivery"), lines=(123,))
def company_is_read_once(patch: Patches) -> None:
    """A seat that was hired today is woken after the next restart only."""
    routing = Router._routing

    async def remembered(service: Router, notification: Any) -> Any:
        company = service._company()
        service._company = lambda: company
        return await routing(service, notification)

    patch.set(Router, "_routing", remembered)


@TIER.fault(
    inbound("side_by_side.py::test_who_is_addressed_first_follows_what_is_drained_along_with_it"),
    lines=(115,),
)
def nobody_waits_for_what_came_first(patch: Patches) -> None:
    """What is drained together is routed in any order, also within a conversation."""

    def at_once(keys: Any) -> Any:
        return [frozenset[int]() for _ in keys]

    patch.set(drained, "predecessors", at_once)
