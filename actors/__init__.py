"""The seat runtime: Thespian actors on one asyncio loop, and the actors that own seats."""
