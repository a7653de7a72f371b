"""The words of Thespian that the cells use, with types: Thespian itself has none."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from thespian.actors import Actor as ThespianActor
from thespian.actors import (
    ActorExitRequest,
    ActorSystemMessage,
    ChildActorExited,
    DeadEnvelope,
    InvalidActorSpecification,
    NoCompatibleSystemForActor,
    PoisonMessage,
    WakeupMessage,
    WatchMessage,
)
from thespian.system import isInternalActorSystemMessage
from thespian.system.messages.status import Thespian_ActorStatus, Thespian_StatusReq
from thespian.system.timing import ExpirationTimer
from thespian.system.utilis import actualActorClass, checkActorCapabilities

from actors.system.address import Address

__all__ = ["ActorStatus", "StatusRequest", "ThespianActor"]

StatusRequest = Thespian_StatusReq
ActorStatus = Thespian_ActorStatus

# mypy: disable-error-code="no-untyped-call"


def exit_request() -> ActorSystemMessage:
    return ActorExitRequest()


def child_exited(child: Address) -> ActorSystemMessage:
    return ChildActorExited(child)


def dead_envelope(to: Address, message: object) -> ActorSystemMessage:
    return DeadEnvelope(to, message)


def poison(message: object, details: str) -> ActorSystemMessage:
    return PoisonMessage(message, details)


def wakeup(period: timedelta | float, payload: object) -> ActorSystemMessage:
    return WakeupMessage(period, payload)


def readable(filenos: list[int]) -> ActorSystemMessage:
    return WatchMessage(filenos)


def expires_in(seconds: float) -> ExpirationTimer:
    return ExpirationTimer(seconds)


def seconds(period: timedelta | float) -> float:
    """Thespian takes its periods either way."""
    return period.total_seconds() if isinstance(period, timedelta) else float(period)


def is_internal(message: object) -> bool:
    """Whether Thespian hides this message from programs outside."""
    return bool(isInternalActorSystemMessage(message))


def hand_over(actor: ThespianActor, message: object, sender: Address) -> object:
    """Run one message on an unmodified actor; raises what it raises."""
    return actor.receiveMessage(message, sender)


def class_of(spec: type[ThespianActor] | str) -> object:
    """The class that a specification names. Raises InvalidActorSpecification."""
    return actualActorClass(spec)


def fits(
    cls: type[ThespianActor],
    capabilities: Mapping[str, Any],
    requirements: Mapping[str, Any] | None,
) -> bool:
    """Whether the class agrees to live in a system of these capabilities."""
    return bool(checkActorCapabilities(cls, capabilities, requirements))


def no_system_for(cls: type[ThespianActor]) -> NoCompatibleSystemForActor:
    return NoCompatibleSystemForActor(cls, "No compatible ActorSystem")


def no_class(spec: object) -> InvalidActorSpecification:
    return InvalidActorSpecification(spec, "no actor class")
