"""Addresses: what one actor holds of another."""

from __future__ import annotations

from typing import TYPE_CHECKING

from thespian.actors import ActorAddress

if TYPE_CHECKING:
    from actors.system.endpoint import Endpoint


class Address(ActorAddress):
    """One actor of this process, through all its restarts and after its end.

    Addresses are made by the system alone, one object an actor: they compare by identity,
    hash and sort by `number` (the order of creation), and outlive the actor, which then
    takes no more mail. They do not leave the process: copying gives the same object,
    pickling is refused.
    """

    __slots__ = ("endpoint", "label", "number")

    def __init__(self, number: int, label: str) -> None:
        self.number = number
        self.label = label
        self.endpoint: Endpoint

    @property
    def _aaddr(self) -> str:
        """What Thespian calls the address details."""
        return f"/{self.label}~{self.number}"

    def __str__(self) -> str:
        return f"/{self.label}~{self.number}"

    def __repr__(self) -> str:
        return f"<Address /{self.label}~{self.number}>"

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if other.__class__ is Address or not isinstance(other, ActorAddress):
            return False
        return bool(other.addressDetails == self._aaddr)

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:  # type: ignore[override]
        return self.number

    def __lt__(self, other: Address) -> bool:
        return self.number < other.number

    def __copy__(self) -> Address:
        return self

    def __deepcopy__(self, memo: object) -> Address:
        return self

    def __reduce__(self) -> str:
        raise TypeError("an actor's address does not leave its process")
