"""From settings to a started broker: the one place that asks which kind it is."""

from __future__ import annotations

from pathlib import Path
from typing import Final, assert_never

from crewlet.broker.cluster import membership
from crewlet.broker.dial import Address
from crewlet.broker.embedded import EmbeddedServer
from crewlet.broker.jetstream import JetStreamBroker
from crewlet.broker.port import CompanyBroker
from crewlet.broker.settings import StreamSettings, checked, servers

FOLDER: Final = "broker"
"""Below the data folder: the run files of a broker that keeps its mail in memory."""

CLUSTER_S: Final = 300.0
"""How long a node waits for its cluster to elect a leader and to have room for all replicas:
on the first boot that is until the last member was started."""


class EmbeddedBroker(JetStreamBroker):
    """A client together with the server that only it can reach, or that its peers share."""

    def __init__(self, server: EmbeddedServer, settings: StreamSettings, node_id: str) -> None:
        super().__init__(
            Address(
                server.address.servers,
                name=node_id,
                user=server.address.user,
                password=server.address.password,
            ),
            memory=not settings.folder,
            replicas=settings.replicas,
            event_retention_hours=settings.event_retention_hours,
            exclusive=settings.cluster is None,
            patience_s=0.0 if settings.cluster is None else CLUSTER_S,
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
    sync = settings.sync if settings.folder else None
    server = EmbeddedServer(folder, sync=sync, member=member)
    await server.start()
    broker = EmbeddedBroker(server, settings, node_id)
    try:
        return await _started(broker)
    except BaseException:
        await server.stop()
        raise


async def _started(broker: CompanyBroker) -> CompanyBroker:
    await broker.start()
    return broker
