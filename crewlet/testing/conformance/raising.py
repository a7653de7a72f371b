"""`raises`, without a test framework: a suite runs under whatever its user has."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


@asynccontextmanager
async def raises(*kinds: type[BaseException]) -> AsyncIterator[None]:
    """The block ends with one of these errors, or the case fails."""
    try:
        yield
    except kinds:
        return
    raise AssertionError(f"none of {', '.join(kind.__name__ for kind in kinds)} was raised")
