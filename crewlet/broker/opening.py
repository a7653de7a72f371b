"""From settings to a started broker: the one place that asks which kind it is."""

from __future__ import annotations

from pathlib import Path
from typing import Final, assert_never

from msgspec.structs import replace

from actors.ports import Unavailable
from crewlet.broker.cluster import membership
from crewlet.broker.dial import Address
from crewlet.broker.domain import DOMAIN
from crewlet.broker.embedded import EmbeddedServer
from crewlet.broker.jetstream import JetStreamBroker
from crewlet.broker.leaf import leaf_link
from crewlet.broker.leaf_link import LinkWatch
from crewlet.broker.port import CompanyBroker
from crewlet.broker.server_log import LogTail
from crewlet.broker.settings import StreamSettings, checked, servers
from crewlet.broker.wire import NoResponders

FOLDER: Final = "broker"
"""Below the data folder: the run files of a broker that keeps its mail in memory."""

CLUSTER_S: Final = 300.0
"""How long a node waits for its cluster to elect a leader and to have room for all replicas:
on the first boot that is until the last member was started."""


class EmbeddedBroker(JetStreamBroker):
    """A client together with the server that only it can reach, or that its peers share."""

    def __init__(
        self, server: EmbeddedServer, settings: StreamSettings, node_id: str, domain: str = ""
    ) -> None:
        super().__init__(
            replace(server.address, name=node_id, domain=domain),
            memory=settings.alone and not settings.folder,
            replicas=settings.replicas,
            event_retention_hours=settings.event_retention_hours,
            exclusive=settings.alone,
            patience_s=0.0 if settings.alone else CLUSTER_S,
        )
        self._server = server
        server.on_moved = lambda url: self.set_servers([url])

    @property
    def server_pid(self) -> int | None:
        """Of the server process."""
        return self._server.pid

    async def stop(self) -> None:
        """The client first, so that what it holds is handed back; then the server."""
        try:
            await super().stop()
        finally:
            await self._server.stop()


class LeafBroker(EmbeddedBroker):
    """The same, where the server keeps nothing: what is said to it is for the members."""

    def __init__(
        self, server: EmbeddedServer, settings: StreamSettings, node_id: str, tail: LogTail
    ) -> None:
        super().__init__(server, settings, node_id, DOMAIN)
        self._link = LinkWatch(self._api, tail)

    async def _provision(self) -> None:
        """Called until it can be done. What a leaf's server does not carry, nobody serves: that
        is no reason to give up."""
        self._link.start()
        if not self._wire.connected:
            reason = self._link.trouble or "none answered yet"
            raise Unavailable(f"the leaf has no connection to a member: {reason}")
        try:
            await super()._provision()
        except NoResponders as error:
            raise Unavailable(str(error)) from error

    async def stop(self) -> None:
        """The watch last but the server: what is handed back goes over the link."""
        try:
            await super().stop()
        finally:
            await self._link.stop()


async def open_broker(settings: StreamSettings, *, node_id: str, data_dir: Path) -> CompanyBroker:
    """A started broker; `stop` also stops the server that was started for it.

    ConfigError for contradicting settings, NodeRefused where another process has the folder,
    BrokerRefused for a server that we will not run on, Unavailable where none answers.
    """
    checked(settings)
    match settings.type:
        case "embedded":
            return await _embedded(settings, node_id, data_dir)
        case "nats":
            return await _started(
                JetStreamBroker(
                    Address(tuple(servers(settings.url)), name=node_id),
                    replicas=settings.replicas,
                    event_retention_hours=settings.event_retention_hours,
                    patience_s=CLUSTER_S if settings.replicas > 1 else 0.0,
                )
            )
        case "memory":
            from crewlet.broker.memory import MemoryBroker

            return await _started(MemoryBroker().client(node_id))
        case _:
            assert_never(settings.type)


async def _embedded(settings: StreamSettings, node_id: str, data_dir: Path) -> CompanyBroker:
    folder = (data_dir / (settings.folder or FOLDER)).absolute()
    member = membership(settings.cluster, node_id) if settings.cluster is not None else None
    leaf = leaf_link(settings.leaf, node_id) if settings.leaf is not None else None
    sync = settings.sync if settings.folder else None
    server = EmbeddedServer(folder, sync=sync, member=member, leaf=leaf)
    tail = LogTail(server.log)  # from before its first line
    await server.start()
    broker = (
        EmbeddedBroker(server, settings, node_id)
        if leaf is None
        else LeafBroker(server, settings, node_id, tail)
    )
    try:
        return await _started(broker)
    except BaseException:
        await broker.stop()
        raise


async def _started(broker: CompanyBroker) -> CompanyBroker:
    await broker.start()
    return broker
