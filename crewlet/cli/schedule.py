"""`crewlet schedule`: work that comes by the clock."""

from __future__ import annotations

from typing import Final

from crewlet.cli.acts import Act, group
from crewlet.cli.table import Column

SCHEDULES: Final = (
    Act(
        words="schedule ls",
        about="List the schedules: what comes next, what became of the last.",
        more="Times are those of the schedule's own zone. OUTCOME is what became of LAST: fired "
        "(`crewlet events` has a record for each seat), no_mailbox where a seat it is for had no "
        "inbox (NOTE names it and says what to do), or skipped_catchup where nobody looked in "
        "time. SINCE is when it became what it is: it fires for nothing before that.",
        columns=(
            Column("scope"),
            Column("name"),
            Column("cron"),
            Column("zone"),
            Column("target"),
            Column("next"),
            Column("last"),
            Column("outcome"),
            Column("since"),
            Column("note", free=True),
        ),
        examples="schedule ls\nschedule ls -o json",
    ),
)

schedule = group("schedule", "Work that comes by the clock.", SCHEDULES)
