"""What a benchmark prints: rows of subject, metric, unit, value and ratio to the limit."""

from __future__ import annotations

import os
import platform
import subprocess
from dataclasses import asdict, dataclass, field


@dataclass(frozen=True)
class Row:
    """`ratio_to_limit` compares with the fastest thing possible, measured in the same run;
    None where there is no such thing."""

    subject: str
    metric: str
    unit: str
    value: float
    ratio_to_limit: float | None = None


@dataclass
class Report:
    name: str
    rows: list[Row] = field(default_factory=list)

    def add(
        self, subject: str, metric: str, unit: str, value: float, ratio: float | None = None
    ) -> None:
        rounded = None if ratio is None else round(ratio, 3)
        self.rows.append(Row(subject, metric, unit, round(value, 4), rounded))

    def as_object(self) -> dict[str, object]:
        rows = [asdict(row) for row in self.rows]
        return {"name": self.name, "commit": commit(), "machine": machine(), "rows": rows}

    def as_table(self) -> str:
        wide = max((len(row.subject) for row in self.rows), default=0)
        lines = [f"{'subject':<{wide}} {'metric':<28} {'value':>12} {'unit':<8} of the limit"]
        for row in self.rows:
            ratio = "" if row.ratio_to_limit is None else f"{row.ratio_to_limit:.2f}"
            lines.append(
                f"{row.subject:<{wide}} {row.metric:<28} {row.value:>12} {row.unit:<8} {ratio}"
            )
        return "\n".join(lines)


def commit() -> str:
    """The commit that was measured; empty outside a checkout."""
    done = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False
    )
    return done.stdout.strip()


def machine() -> str:
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    python = platform.python_version()
    return f"{os.cpu_count()} cores, {memory:.0f} GiB, {platform.system()}, Python {python}"
