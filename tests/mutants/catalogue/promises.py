"""Faults of promises that M1 to M24 leave out: S20, the other half of S21, and the end of every
excuse. Seeds of the simulation see them."""

from __future__ import annotations

from typing import Any

from actors.custody import Custody
from actors.mail import MailActor
from crewlet.broker.memory_attachment import MemoryAttachment
from crewlet.broker.memory_mailbox import MemoryMailbox
from crewlet.broker.memory_server import MemoryServer
from tests.mutants.catalogue.cases import seeds
from tests.mutants.mutant import Patches, Tier

TIER = Tier("promises")


@TIER.fault(seeds("S20", "swarm", 2), lines=(59,), note="S20 on 2 of 2 seeds of swarm")
def ensured_again_is_made_anew(patch: Patches) -> None:
    """To ensure a mailbox puts an empty one in the place of the one that is there."""
    ensure = MemoryServer.ensure

    def anew(broker: MemoryServer, mailbox: Any) -> bool:
        made = ensure(broker, mailbox)
        broker._mailboxes[mailbox.topic][mailbox.group] = MemoryMailbox(mailbox)
        return made

    patch.set(MemoryServer, "ensure", anew)


@TIER.fault(seeds("S20", "moves", 2), lines=(67,), note="S20 on 2 of 2 seeds of moves")
def a_detach_takes_waiting_mail_along(patch: Patches) -> None:
    """Whoever lets go of a mailbox has it forget what was never handed out."""
    release = MemoryAttachment.release

    def along(attachment: MemoryAttachment) -> None:
        release(attachment)
        attachment._box._fresh.clear()

    patch.set(MemoryAttachment, "release", along)


@TIER.fault(seeds("S20", "busy", 3), lines=(40, 66), note="S20 on 4 of 4 seeds of busy")
def a_hand_back_costs_two(patch: Patches) -> None:
    """What is handed back because of a brake or a deferral has paid for it once more."""
    hand_back = MemoryMailbox.hand_back

    def twice(box: MemoryMailbox, position: int) -> None:
        if held := box._held.get(position):
            held.count += 1
        hand_back(box, position)

    patch.set(MemoryMailbox, "hand_back", twice)


@TIER.fault(
    seeds("S21", "commanded", 2), lines=(17,), note="S21 on 4 of 4 seeds of the plan commanded"
)
def a_hold_stops_control_too(patch: Patches) -> None:
    """A brake of the inbox is put on every mailbox of the seat."""
    on_brake = MailActor.on_brake

    def all_of_them(actor: MailActor, brake: Any, sender: Any) -> None:
        for box in actor._boxes.values():
            box.step(brake.signal)
        on_brake(actor, brake, sender)

    patch.handler(MailActor, "on_brake", all_of_them)


@TIER.fault(
    seeds("L4", "outlived", 6),
    lines=(281,),
    note="L4 on 3 of 16 seeds of the plan outlived: nobody may take its seat meanwhile",
)
def nobody_looks_for_what_was_lost(patch: Patches) -> None:
    """What an outage took from a node that outlived it, and what a killed broker forgot, is looked
    for neither after a hand-over in order nor when the node is heard again."""
    begin = Custody._begin_looking

    def of_the_dead_only(actor: Custody, entry: Any) -> None:
        if entry.wanted.reclaim:
            begin(actor, entry)

    patch.set(Custody, "_begin_looking", of_the_dead_only)
    patch.handler(Custody, "on_look_around", lambda actor, around, sender: None)
