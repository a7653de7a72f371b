"""Where the two parted once: each script is what a longer one was shrunk to."""

from __future__ import annotations

import asyncio
from typing import Final

import pytest

from actors.delivery import Dead, Done, HandBack, Retry, Verdict
from crewlet import topics
from tests.differential import port_play, queue_play, queue_steps
from tests.differential.differ import Bench
from tests.differential.port_steps import (
    SHORT_S,
    Burn,
    Delete,
    Ensure,
    Fetch,
    Park,
    PassTime,
    Publish,
    Reclaim,
    Restart,
    RestartBroker,
    Script,
    Settle,
    Sweep,
)
from tests.differential.worlds import Real


def say(box: int, *what: tuple[int, Verdict]) -> Settle:
    """Of the deliveries seen, counted from the last."""
    return Settle(box, 0, what)


TWO: Final = (Publish(0, 1, 0), Publish(0, 2, 0))
STUCK: Final = (Publish(0, 1, 0), Burn(0, 0, 30), Fetch(0, 1, 0))

PORT: Final[dict[str, Script]] = {
    "a mailbox begins empty on a topic that retains": (
        Delete(2, 0),
        Publish(1, 1, 0),
        Ensure(2, 0),
    ),
    "a retry without a delay is a hand-back": (
        *TWO,
        Fetch(0, 1, 0),
        say(0, (0, Retry(0.0))),
        Fetch(0, 2, 0),
    ),
    "a retry takes what is queued out of the queue": (
        *TWO,
        Fetch(0, 1, 0),
        say(0, (0, HandBack())),
        say(0, (0, Retry(SHORT_S))),
        Fetch(0, 2, 0),
        PassTime(1),
        Fetch(0, 2, 0),
    ),
    "of two that are queued the other one stays": (
        *TWO,
        Fetch(0, 2, 0),
        say(0, (1, HandBack()), (0, HandBack())),
        say(0, (1, Retry(SHORT_S))),
        Fetch(0, 2, 0),
    ),
    "a reclaim brings back what waits for a retry": (
        *TWO,
        Fetch(0, 2, 0),
        say(0, (1, Retry(60.0))),
        Reclaim(0, 0),
        Fetch(0, 3, 0),
    ),
    "a reclaim counts what is queued already": (
        *TWO,
        Fetch(0, 2, 0),
        say(0, (0, HandBack())),
        Reclaim(0, 0),
        Fetch(0, 3, 0),
    ),
    "an attachment reads the mailbox that is made again": (
        Fetch(0, 1, 0),
        Delete(0, 0),
        Ensure(0, 0),
        Publish(0, 1, 0),
        Fetch(0, 1, 0),
    ),
    "a parked fetch ends empty when its client stops": (Park(0, 1, 0), Restart(0, crash=False)),
    "what the broker gave up on stays where it is": (
        *STUCK,
        say(0, (0, Retry(60.0))),
        say(0, (0, HandBack())),
        Sweep(0, 0),
        say(0, (0, Dead("given up"))),
        Sweep(0, 0),
    ),
    "a broker that was killed forgets in which order mail was handed back": (
        *TWO,
        Fetch(0, 2, 0),
        say(0, (0, HandBack())),
        say(0, (1, HandBack())),
        RestartBroker(),
        Fetch(0, 3, 0),
    ),
    "a broker that was killed remembers the ids of mail that is still there": (
        *TWO,
        Publish(1, 3, 0),
        Fetch(0, 2, 0),
        Fetch(1, 2, 0),
        say(0, (0, Done())),
        say(1, (0, Done()), (1, Done())),
        RestartBroker(),
        *TWO,
        Publish(1, 3, 0),
    ),
    "a retry that was due is due after a restart, and one that waits goes on": (
        *TWO,
        Fetch(0, 2, 0),
        say(0, (0, Retry(SHORT_S))),
        PassTime(1),
        say(0, (1, Retry(60.0))),
        RestartBroker(),
        Fetch(0, 3, 0),
    ),
}


QUEUE: Final[dict[str, queue_steps.Script]] = {
    "a deferral is handed out again behind no mail that came meanwhile": (
        queue_steps.Subscribe(0, 0),
        queue_steps.Send(0, 1, "x", 1, 0),
        queue_steps.Send(0, 2, "y", 0, 0),
        queue_steps.Say(0, "defer"),
        queue_steps.Send(0, 3, "x", 2, 0),
        queue_steps.PassTime(1),
        queue_steps.Say(0, "ack"),
    ),
    "two that were failed together come back after their reader has left": (
        queue_steps.Send(0, 1, "x", 5, 0),
        queue_steps.Send(0, 2, "x", 5, 0),
        queue_steps.Subscribe(0, 1),
        queue_steps.Say(0, "nak"),
        queue_steps.Detach(0, 1),
    ),
    "what runs when the broker is killed is settled after it": (
        queue_steps.Subscribe(0, 0),
        queue_steps.Send(0, 1, "x", 1, 0),
        queue_steps.Send(0, 2, "y", 1, 0),
        queue_steps.RestartBroker(),
        queue_steps.Say(0, "nak"),
        queue_steps.PassTime(1),
    ),
    "what was failed before the broker is killed comes back": (
        queue_steps.Subscribe(0, 0),
        queue_steps.Send(0, 1, "x", 1, 0),
        queue_steps.Say(0, "nak"),
        queue_steps.Hold(0, 0, "run"),
        queue_steps.PassTime(1),
        queue_steps.RestartBroker(),
        queue_steps.Lift(0, 0, "run"),
    ),
    "what was handed back before the broker is killed comes back": (
        queue_steps.Subscribe(0, 0),
        queue_steps.Send(0, 1, "x", 1, 0),
        queue_steps.Say(0, "defer"),
        queue_steps.Hold(0, 0, "run"),
        queue_steps.PassTime(1),
        queue_steps.RestartBroker(),
        queue_steps.Lift(0, 0, "run"),
    ),
    "what was handed back by a seat that left comes back to it": (
        queue_steps.Subscribe(0, 0),
        queue_steps.Send(0, 1, "x", 1, 0),
        queue_steps.Say(0, "defer"),
        queue_steps.Detach(0, 0),
        queue_steps.PassTime(1),
        queue_steps.RestartBroker(),
        queue_steps.Subscribe(0, 0),
        queue_steps.PassTime(1),
    ),
    "a seat moves to another queue while its handler runs": (
        queue_steps.Subscribe(0, 0),
        queue_steps.Send(0, 1, "x", 1, 0),
        queue_steps.Send(0, 2, "y", 1, 0),
        queue_steps.Send(0, 3, "z", 0, 0),
        queue_steps.Say(0, "ack"),
        queue_steps.Detach(0, 0),
        queue_steps.Subscribe(0, 1),
        queue_steps.Say(0, "defer"),
    ),
}


@pytest.mark.certifies(12)
@pytest.mark.parametrize("name", QUEUE)
def test_queue(bench: Bench, name: str) -> None:
    parted = bench.difference(queue_play.Player, QUEUE[name])
    assert parted is None, parted


def test_a_second_fetch_is_refused_and_leaves_the_first_alone(real: Real) -> None:
    """Nobody of ours fetches twice; whoever does is told, and nothing else happens."""

    async def main() -> None:
        client = real.client("impatient")
        await client.start()
        box = topics.inbox_of("impatient")
        await client.ensure(box)
        attachment = await client.attach(box, 1)
        fetch = asyncio.create_task(client.fetch(attachment, 1, 1.0))
        await asyncio.sleep(0.1)
        with pytest.raises(RuntimeError):
            await client.fetch(attachment, 1, 0.0)
        await asyncio.sleep(0.2)  # whatever the refusal has set off is at its end
        await client.publish(box.topic, b"a", message_id="a")
        try:
            assert [one.body for one in await fetch] == [b"a"]
        finally:
            await client.stop()

    asyncio.run(main())


@pytest.mark.certifies(57)
@pytest.mark.parametrize("name", PORT)
def test_port(bench: Bench, name: str) -> None:
    parted = bench.difference(port_play.Player, PORT[name])
    assert parted is None, parted
