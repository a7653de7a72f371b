"""For users' own tests: time that does not pass, a broker in memory, and the suites.

    from crewlet.testing import MemoryBroker, run_virtual

    async def main():
        client = MemoryBroker().client("node-1")
        await client.start()
        ...

    run_virtual(main)      # an hour of backoff takes no time, and equal seeds are equal runs

`simulate(company, handler, seeds=range(20))` plays a company of your own on a fleet that fails
(`crewlet.testing.simulation`); `crewlet.testing.conformance` certifies a broker of your own.
"""

from actors.system.virtual import run_virtual
from crewlet.broker.memory import MemoryBroker
from crewlet.broker.memory_client import MemoryClient
from crewlet.testing.simulation import simulate
from crewlet.testing.twin import TwinHarness

__all__ = ["MemoryBroker", "MemoryClient", "TwinHarness", "run_virtual", "simulate"]
