"""What a benchmark prints: rows of subject, metric, unit, value and ratio to the limit."""

from __future__ import annotations

import os
import platform
import subprocess
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Final

OURS: Final = "crewlet"
"""What our subject is called where a benchmark has only one."""

MISSING: Final = "missing: "


@dataclass(frozen=True)
class Row:
    """`ratio_to_limit` compares with the fastest thing possible, measured in the same run;
    None where there is no such thing. `value` is None of a subject that could not be measured:
    the metric says why."""

    subject: str
    metric: str
    unit: str
    value: float | None
    ratio_to_limit: float | None = None


def load() -> float:
    """Processes that ran or wanted to, on average over the last minute."""
    return round(os.getloadavg()[0], 1)


@dataclass
class Report:
    """`load` is that before the benchmark: what else the machine was busy with."""

    name: str
    rows: list[Row] = field(default_factory=list)
    load: float = field(default_factory=load)

    def add(
        self, subject: str, metric: str, unit: str, value: float, ratio: float | None = None
    ) -> None:
        rounded = None if ratio is None else round(ratio, 3)
        self.rows.append(Row(subject, metric, unit, round(value, 4), rounded))

    def missing(self, subject: str, why: str) -> None:
        """Name who should be here and is not: a table without it would look complete."""
        self.rows.append(Row(subject, f"{MISSING}{why}", "", None))

    def as_object(self) -> dict[str, object]:
        rows = [asdict(row) for row in self.rows]
        about = f"{machine()}, load {self.load} before"
        return {"name": self.name, "commit": commit(), "machine": about, "rows": rows}

    def as_table(self) -> str:
        wide = max((len(row.subject) for row in self.rows), default=0)
        long = max((len(row.metric) for row in self.rows), default=0)
        lines = [f"{'subject':<{wide}} {'metric':<{long}} {'value':>12} {'unit':<8} of the limit"]
        for row in self.rows:
            value = "-" if row.value is None else str(row.value)
            ratio = "" if row.ratio_to_limit is None else f"{row.ratio_to_limit:.2f}"
            line = f"{row.subject:<{wide}} {row.metric:<{long}} {value:>12} {row.unit:<8} {ratio}"
            lines.append(line.rstrip())
        return "\n".join(lines)


def commit() -> str:
    """The commit that was measured, with a `+` if there was more on top of it; empty outside a
    checkout."""
    done = subprocess.run(
        ["git", "describe", "--always", "--exclude=*", "--dirty=+"],
        cwd=Path(__file__).parent,
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout.strip()


def machine() -> str:
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    python = platform.python_version()
    return f"{os.cpu_count()} cores, {memory:.0f} GiB, {platform.system()}, Python {python}"
