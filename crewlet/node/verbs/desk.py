"""Where calls come in: over this node's socket, or from another node on somebody's behalf.

A verb is answered by the node that it is about. Whoever is asked finds that node and passes the
call on, once; it is done, and recorded, there. A node that a person names with `--on` is asked as
at its own socket: it may pass the call on in its turn.
"""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import Mapping
from functools import partial
from typing import Any, Final

import msgspec
import structlog
from msgspec import Raw, Struct

from actors.admin import Caller, Failure, Refused, Verb
from actors.admin.verbs import AnyVerb
from actors.ports import BrokerError, NoMailbox, Unavailable
from crewlet import topics
from crewlet.broker.port import Subscription
from crewlet.errors import CrewletError, StoreUnavailable
from crewlet.events import Event, Trace
from crewlet.events import catalogue as types
from crewlet.events.types import OperatorActed
from crewlet.node.verbs.following import Following
from crewlet.node.verbs.operation import AnyOperation, Rows
from crewlet.node.view import NodeView

ANSWER_S: Final = 15.0
"""How long another node may take: a verb that waits for the broker has its own deadlines
within this, and a caller at a socket waits for longer."""

MOST_BYTES: Final = 7 * 1024 * 1024
"""The longest answer that a node sends another: a message of the broker holds 8 MiB."""

LOOK_S: Final = 6.0
"""The same where any node can say something of it, which is better heard soon. A node whose broker
does not answer knows that after five seconds."""

PASSED_ON_S: Final = 12.0
"""The same of a node that has been asked by another: who asked first hears which one was silent."""

LEAVE_S: Final = 1.0

SHOWN: Final = 64

log = structlog.get_logger(__name__)


class On(Struct, frozen=True, forbid_unknown_fields=True):
    """Have `verb` answered by `node`, whatever it is about."""

    node: str
    verb: str
    args: Raw = msgspec.field(default_factory=lambda: Raw(b"{}"))


class Question(Struct, frozen=True):
    """From node to node: who asks for what. `chosen`: a person named the node, which may pass it
    on; else it is for that node to answer. `follow` names an answer without an end, of which the
    next piece is asked for, or that is `left`."""

    verb: str
    args: Raw
    caller: Caller
    chosen: bool = False
    follow: str = ""
    left: bool = False


class Reply(Struct, frozen=True):
    """The whole answer: its rows, and how it failed where it did. `more`: this is a piece of it."""

    rows: tuple[Raw, ...] = ()
    failure: Failure | None = None
    more: bool = False


class Unheard(Refused):
    """The node that was asked did not answer: nobody was there, or nothing came in time."""


class Desk:
    """The closed table of one node, at its socket and at the subject of its own."""

    def __init__(self, node: NodeView, operations: Mapping[str, AnyOperation]) -> None:
        self._node = node
        self._operations = dict(operations)
        self._served: Subscription | None = None
        self._following = Following()

    def verbs(self) -> Mapping[str, AnyVerb]:
        """For the socket. What is followed on a named node ends with this one as well."""
        table: dict[str, AnyVerb] = {
            name: Verb(operation.args, self._asked(name), operation.follows)
            for name, operation in self._operations.items()
        }
        return {**table, "on": Verb(On, self._on), "on.follow": Verb(On, self._on, follows=True)}

    async def start(self) -> None:
        """Answer other nodes. Unavailable while the broker is away."""
        subject = topics.node_control(self._node.node_id)
        self._served = await self._node.broker.serve(subject, self._answer)

    async def stop(self) -> None:
        """Whoever follows from another node is told that this is the end."""
        await self._following.stop()
        if self._served is not None:
            await self._served.close()

    # -- at the socket ----------------------------------------------------------------

    def _asked(self, name: str) -> Any:
        return lambda args, caller: self._routed(name, args, caller)

    async def _on(self, args: On, caller: Caller) -> Rows:
        operation = self._known(args.verb)
        decoded = _decoded(operation, args.args)
        if args.node == self._node.node_id:
            rows = self._routed(args.verb, decoded, caller)
        else:
            rows = self._there(args.node, args.verb, bytes(args.args), caller, chosen=True)
        async with contextlib.aclosing(rows):
            async for row in rows:
                yield row

    async def _routed(
        self, name: str, args: Any, caller: Caller, within_s: float = ANSWER_S
    ) -> Rows:
        """By the node that it is about; by this one where that is silent, and this one can."""
        operation = self._operations[name]
        node = self._answering(operation, args)
        if node != self._node.node_id:
            body = msgspec.json.encode(args)
            if operation.or_here and operation.target is None:
                within_s = min(within_s, LOOK_S)
            rows = self._there(node, name, body, caller, chosen=False, within_s=within_s)
            try:
                async with contextlib.aclosing(rows):
                    async for row in rows:
                        yield row
                return
            except Unheard as silent:
                if not operation.or_here:
                    raise _about(silent, operation, node, args) from None
        async with contextlib.aclosing(self._here(name, args, caller)) as rows:
            async for row in rows:
                yield row

    def _answering(self, operation: AnyOperation, args: Any) -> str:
        match operation.where:
            case "node":
                return str(args.node) or self._node.node_id
            case "owner":
                return self._node.fleet.owner_of(args.handle) or self._node.node_id
            case _:
                return self._node.node_id

    def _known(self, name: str) -> AnyOperation:
        operation = self._operations.get(name)
        if operation is None:
            known = ", ".join(sorted(self._operations))
            raise Refused("unknown_verb", f"no verb {name[:SHOWN]!r} here; there are: {known}")
        return operation

    # -- on this node -----------------------------------------------------------------

    async def _here(self, name: str, args: Any, caller: Caller) -> Rows:
        """Do it, and record it once it is known what came of it."""
        operation, outcome = self._operations[name], "left"
        try:
            async with contextlib.aclosing(operation.run(args, caller)) as rows:
                async for row in rows:
                    outcome = "done"  # an act has acted before it answers
                    yield row
        except Exception as error:
            outcome = "refused" if isinstance(error, Refused | CrewletError) else "failed"
            raise
        finally:
            if operation.target is not None:
                self._record(name, operation.target(args), outcome, caller)

    def _record(self, verb: str, target: str, outcome: str, caller: Caller) -> None:
        """Never the arguments: a target that is no name may be anything that somebody typed."""
        named = target if all(map(topics.is_handle, target.split(","))) else ""
        body = OperatorActed(
            actor=caller.user,
            uid=caller.uid,
            verb=verb,
            target=named,
            outcome=outcome,
            summary=f"{caller.user}: {verb} {named}".strip() + f", {outcome}",
            via=caller.via,
        )
        now, trace = self._node.clock.now(), Trace.current()
        self._node.queue.record_soon(
            Event.new(types.OPERATOR_ACTED, at=now, trace=trace, body=body)
        )

    # -- on another node --------------------------------------------------------------

    async def _there(
        self,
        node: str,
        name: str,
        args: bytes,
        caller: Caller,
        *,
        chosen: bool,
        within_s: float = ANSWER_S,
    ) -> Rows:
        asking = msgspec.structs.replace(caller, via=caller.via or self._node.node_id)
        follow = secrets.token_hex(8) if self._operations[name].follows else ""
        question = Question(name, Raw(args), asking, chosen, follow)
        reply = await self._ask(node, question, within_s)
        try:
            while True:
                for row in reply.rows:
                    yield row
                if reply.failure is not None:
                    failure = reply.failure
                    raise Refused(failure.code, failure.message, failure.exit)
                if not reply.more:
                    return
                reply = await self._ask(node, question, within_s)
        finally:
            if reply.more:
                await self._leave(node, question)

    async def _leave(self, node: str, question: Question) -> None:
        """Nobody follows any more; a node that does not hear it notices by itself."""
        body = msgspec.json.encode(msgspec.structs.replace(question, left=True))
        with contextlib.suppress(BrokerError):
            await self._node.broker.ask(topics.node_control(node), body, wanted=1, within_s=LEAVE_S)

    async def _ask(self, node: str, question: Question, within_s: float) -> Reply:
        """Raises Unheard where no answer comes."""
        if not topics.is_handle(node):
            raise Refused("no_node", f"{node[:SHOWN]!r} is no node id; see `crewlet node ls`", 2)
        subject, began = topics.node_control(node), self._node.clock.monotonic()
        body = msgspec.json.encode(question)
        try:
            answers = await self._node.broker.ask(subject, body, wanted=1, within_s=within_s)
        except BrokerError as error:
            raise Unheard("broker", f"{node} was not heard: {error}", exit=1) from None
        if answers:
            return msgspec.json.decode(answers[0], type=Reply)
        if self._node.clock.monotonic() - began < within_s / 2:
            raise Unheard("no_node", f"no node {node} answers; see `crewlet node ls`")
        raise Unheard(
            "no_answer",
            f"{node} did not answer within {within_s:.0f} s: whether it did it is not known; "
            "look before you say it again",
            exit=1,
        )

    async def _answer(self, body: bytes) -> bytes:
        """For another node: always an answer, since a silent one costs the asker its patience."""
        rows: list[Raw] = []
        failure: Failure | None = None
        more = False
        try:
            question = msgspec.json.decode(body, type=Question)
            operation = self._known(question.verb)
            args = _decoded(operation, question.args)
            begin = partial(self._answered, question, operation, args)
            if question.left:
                await self._following.end(question.follow)
            elif operation.follows:
                rows, more = await self._following.take(question.follow, begin)
            else:
                async with contextlib.aclosing(begin()) as found:
                    async for row in found:
                        rows.append(Raw(msgspec.json.encode(row)))
        except Exception as error:
            failure = _failure(error)
        reply = msgspec.json.encode(Reply(tuple(rows), failure, more))
        if len(reply) > MOST_BYTES:
            why = "the answer is too large to be carried: ask that node itself, on its machine"
            reply = msgspec.json.encode(Reply((), Failure("too_large", why)))
        return reply

    def _answered(self, question: Question, operation: AnyOperation, args: Any) -> Rows:
        """A call that was passed on is passed on no further: between two nodes that take each
        other for the owner it would go round and round."""
        if question.chosen:
            return self._routed(question.verb, args, question.caller, PASSED_ON_S)
        answering = self._answering(operation, args)
        if answering != self._node.node_id:
            raise Refused("moved", f"that is for {answering} to answer by now; try again", exit=1)
        return self._here(question.verb, args, question.caller)


def explained(error: Exception) -> Failure | None:
    """Our own errors in their own words; anything else is a bug, and is told as one."""
    if isinstance(error, StoreUnavailable | Unavailable):
        code = error.code if isinstance(error, StoreUnavailable) else "broker"
        way = "`crewlet node ls` shows who is there: a cluster needs most of its members"
        return Failure(code, f"{error}; {way}", exit=1)
    if isinstance(error, CrewletError):
        exit = 3 if error.code == "node_refused" else 2 if error.blame == "caller" else 1
        return Failure(error.code, str(error), exit=exit)
    if isinstance(error, NoMailbox):
        return Failure("no_mailbox", str(error), exit=1)
    if isinstance(error, BrokerError):
        return Failure("broker", f"the broker did not do it: {error}", exit=1)
    if isinstance(error, TimeoutError):
        return Failure("busy", "the node did not come to it in time; look before you say it again")
    return None


def _about(silent: Unheard, operation: AnyOperation, node: str, args: Any) -> Unheard:
    """Nobody who named a seat knows why a node is spoken of."""
    if operation.where != "owner":
        return silent
    told, then = silent.failure, "another takes it over when that one's session has ended"
    text = f"{args.handle} is worked on {node}: {told.message}; {then}"
    return Unheard(told.code, text, told.exit)


def _failure(error: Exception) -> Failure:
    if isinstance(error, Refused):
        return error.failure
    if (known := explained(error)) is not None:
        return known
    log.error("verb_failed_for_a_node", error=type(error).__name__)
    return Failure("internal", f"{type(error).__name__} on the node that was asked")


def _decoded(operation: AnyOperation, args: Raw) -> Any:
    try:
        return msgspec.json.decode(args, type=operation.args)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise Refused("bad_args", f"the arguments do not fit: {error}", exit=2) from None
