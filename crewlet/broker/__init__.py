"""The broker: one port, three ways to run what is behind it. Only this package knows NATS."""

from crewlet.broker.embedded import EmbeddedServer
from crewlet.broker.jetstream import JetStreamBroker
from crewlet.broker.opening import open_broker
from crewlet.broker.port import CompanyBroker, DeadLetter, Subscription
from crewlet.broker.settings import StreamSettings

__all__ = [
    "CompanyBroker",
    "DeadLetter",
    "EmbeddedServer",
    "JetStreamBroker",
    "StreamSettings",
    "Subscription",
    "open_broker",
]
