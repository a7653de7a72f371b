"""What a run of tests says about itself, as the plugin writes it down."""

from __future__ import annotations

from msgspec import Struct, field


class Test(Struct):
    """One test's end, or the end of its setup or teardown where that went wrong."""

    __test__ = False

    id: str
    when: str
    outcome: str
    error: str = ""


class Report(Struct):
    """`stale` says why the fault could not be planted, `broken` where it fell over by itself."""

    tests: list[Test] = field(default_factory=list)
    stale: str = ""
    broken: list[str] = field(default_factory=list)

    @property
    def failed(self) -> dict[str, Test]:
        """Those that failed in their own call."""
        return {t.id: t for t in self.tests if t.when == "call" and t.outcome == "failed"}

    @property
    def passed(self) -> set[str]:
        ends = {t.id for t in self.tests if t.outcome != "passed"}
        return {t.id for t in self.tests if t.when == "call" and t.outcome == "passed"} - ends
