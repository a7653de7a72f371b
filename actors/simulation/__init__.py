"""A fleet in one process: the real actors, a broker with faults, virtual time, one seed.

Every node is a process of its own as far as its code can tell: it has its own event loop and
its own clocks, it can be stopped for a while, killed and started again, and what it says to
the broker goes over a wire that may lose it. What happens is written down, and checked as it
is written (docs/guide/simulation.md).
"""
