"""Every key of the company file: its shape, bounds, default and purpose, written down once.

The reader, the JSON schema and the reference in docs/guide/company.md all come from here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from actors.delivery import MAX_BATCH, MAX_LINGER_S
from crewlet.company.endpoint import OPENAI
from crewlet.company.key import Key, Section
from crewlet.company.model import TURN_TIMEOUT_S, Contact
from crewlet.company.schedule_keys import SCHEDULE, SCHEDULING

_COMPANY: Final = {
    "name": Key(
        shape="line",
        required=True,
        example="Octo Works",
        about="The company. The ids of its agents are derived from it: a new name, new agents.",
    ),
    "mission": Key(shape="text", example="Ship small things", about="What the company is for."),
    "vision": Key(shape="text", example="A calm backlog", about="Where it wants to be."),
    "policies": Key(
        shape="lines", example="[Be kind in reviews]", about="Rules that hold for everybody."
    ),
    "units": Key(
        shape="tables", of="unit", spellings=("children",), about="Departments, teams; they nest."
    ),
    "roles": Key(shape="tables", of="role", about="Seats that belong to no unit."),
    "routes": Key(shape="tables", of="route", about="Who is woken by events that address nobody."),
    "integrations": Key(
        shape="table", of="integrations", about="The outside systems that may send us events."
    ),
    "handler": Key(
        shape="table", of="handler", about="What does the work of every agent without its own."
    ),
    "scheduling": Key(shape="table", of="scheduling", about="What holds for all schedules."),
    "notification_coalesce_window_seconds": Key(
        shape="number",
        default="0",
        minimum=0,
        maximum=MAX_LINGER_S,
        example="2.5",
        about="How long to wait for more mail after the first message, in seconds.",
    ),
    "notification_coalesce_max_batch": Key(
        shape="integer",
        default="20",
        minimum=1,
        maximum=MAX_BATCH,
        example="50",
        about="The most messages collected at once.",
    ),
    "notification_rate_limit": Key(
        shape="integer",
        default="0",
        minimum=0,
        maximum=1_000_000,
        example="100",
        about="Notifications a seat may get in one second, the rest is skipped; 0 is no limit.",
    ),
}

_UNIT: Final = {
    "name": Key(shape="line", required=True, example="Platform", about="The unit."),
    "type": Key(shape="line", example="team", about="What kind of unit it is, in your words."),
    "purpose": Key(shape="text", example="Keeps the lights on", about="What it is for."),
    "lead": Key(
        shape="line",
        example="boss",
        about="Handle or name of the role that leads it, and so manages the unit's own roles.",
    ),
    "goals": Key(shape="lines", example="[Answer within a day]", about="What it works towards."),
    "placement": Key(
        shape="table",
        of="placement",
        default="the outer unit's",
        about="Which nodes may work the seats of the unit and of those inside it.",
    ),
    "schedules": Key(shape="tables", of="schedule", about="What its agents do at set times."),
    "roles": Key(shape="tables", of="role", about="The seats of the unit."),
    "units": Key(
        shape="tables", of="unit", spellings=("children",), about="Units inside this one."
    ),
}

_ROLE: Final = {
    "name": Key(shape="line", required=True, example="Developer", about="The role."),
    "handle": Key(
        shape="line",
        default="made from the name",
        example="dev",
        about="The seat's address: small letters, digits, `-` and `_`, at most 63.",
    ),
    "kind": Key(
        shape="line",
        default="agent",
        choices=("agent", "human"),
        example="human",
        about="Whether work is done here (agent) or by a person elsewhere (human).",
    ),
    "goal": Key(shape="text", example="Turn issues into pull requests", about="What it is for."),
    "backstory": Key(shape="text", example="Ten years of Python", about="Who it is."),
    "responsibilities": Key(
        shape="lines", example="[Review, Release]", about="What it answers for."
    ),
    "manages": Key(
        shape="lines",
        default="the roles of the units it leads",
        example="[ops, Reviewer]",
        about="Handles or names of further roles that report to it.",
    ),
    "email": Key(shape="line", example="dev@octo.example", about="Its e-mail address."),
    "contact": Key(shape="table", of="contact", about="Its accounts in outside systems."),
    "handler": Key(
        shape="table", of="handler", default="the company's", about="What does its work."
    ),
    "placement": Key(
        shape="table",
        of="placement",
        default="the unit's, else any node",
        about="Which nodes may work it.",
    ),
    "schedules": Key(shape="tables", of="schedule", about="What it does at set times."),
}

_ACCOUNTS: Final = {
    "slack_user_id": ("U012AB3CD", "The member id in Slack."),
    "mattermost_user_id": ("4xp9fdt77pncbef59f4k1qe83o", "The user id in Mattermost."),
    "atlassian_account_id": ("5b10a2844c20165700ede21g", "The account id in Jira, Confluence."),
    "github_login": ("octo-dev", "The login at GitHub, with `[bot]` where it is an app."),
    "gitlab_username": ("octo-dev", "The user name at GitLab."),
    "plane_user_id": ("16c61a3a-512a-48ac-b0be-b6b46fe6f430", "The user id in Plane."),
}
assert tuple(_ACCOUNTS) == Contact.__struct_fields__

_CONTACT: Final = {
    kind: Key(shape="line", example=example, about=about)
    for kind, (example, about) in _ACCOUNTS.items()
}

_HANDLER: Final = {
    "python": Key(
        shape="line",
        example="crewlet.demo.handler:work",
        about="A function as `module:function`; either this, or `command`, or `openai`.",
    ),
    "command": Key(
        shape="command",
        example="[python, work.py]",
        about="A program and its arguments; a text is split at spaces, no shell is involved.",
    ),
    "openai": Key(
        shape="table", of="openai", about="A model behind an OpenAI-compatible endpoint."
    ),
    "timeout_s": Key(
        shape="number",
        default="1800",
        minimum=0.01,
        maximum=TURN_TIMEOUT_S,
        example="300",
        about="How many seconds one turn may take.",
    ),
}

_PLACEMENT: Final = {
    "node": Key(
        shape="line", default="any", example="node-1", about="The only node that may, by its id."
    ),
    "labels": Key(
        shape="filters",
        example="{zone: east, disk: ssd}",
        about="Labels that the node has to have, all of them.",
    ),
}

_ROUTE: Final = {
    "event": Key(
        shape="line",
        required=True,
        spellings=("on",),
        example="github/issues.opened",
        about="`source/type`; `github/*` and `github/issues.*` cover many.",
    ),
    "to": Key(shape="line", required=True, example="triage", about="Handle or name of a role."),
    "where": Key(
        shape="filters",
        example="{repo: octo/*, label: bug}",
        about="What the event must carry as well; `*` and `?` are wildcards.",
    ),
}

VENDORS: Final = {
    "github": ("GitHub", "The webhook's secret"),
    "gitlab": ("GitLab", "The webhook's secret token"),
    "jira": ("Jira", "The webhook's secret, or the `token` of its URL"),
    "confluence": ("Confluence", "The webhook's secret, or the `token` of its URL"),
    "plane": ("Plane", "The webhook's secret key"),
    "slack": ("Slack", "The app's signing secret"),
}
"""Whose deliveries one secret proves: what the vendor is called, and what it calls the secret."""

_INTEGRATIONS: Final = {
    vendor: Key(shape="table", of=vendor, about=f"Webhooks from {called}.")
    for vendor, (called, _) in VENDORS.items()
} | {
    "mattermost": Key(
        shape="table", of="mattermost", about="Posts from Mattermost, by webhook or websocket."
    ),
    "generic": Key(
        shape="named", of="generic", about="Senders of JSON of your own, each under its name."
    ),
}

_INCOMPLETE: Final = ("jira", "confluence")
"""Vendors with payloads that do not name their conversation: a server's new comment."""

_LOOKUP: Final = Key(
    shape="line",
    example="our_lookups:find",
    about="A function as `module:function` that knows the conversation of a payload without one.",
)

_SECRETS: Final[Mapping[str, Section]] = {
    vendor: {
        "secret": Key(
            shape="secret",
            required=True,
            example=f"${{{vendor.upper()}_WEBHOOK_SECRET}}",
            about=f"{secret}, always by way of an environment variable.",
        ),
    }
    | ({"lookup": _LOOKUP} if vendor in _INCOMPLETE else {})
    for vendor, (_, secret) in VENDORS.items()
}

_MATTERMOST: Final = {
    "secret": Key(
        shape="secret",
        example="${MATTERMOST_HOOK_TOKEN}",
        about="The token of the outgoing webhook; of several hooks all, with commas between.",
    ),
    "url": Key(
        shape="line",
        example="https://chat.octo.example",
        about="The server whose websocket is listened to.",
    ),
    "access_token": Key(
        shape="secret",
        example="${MATTERMOST_ACCESS_TOKEN}",
        about="The access token of the account that listens there.",
    ),
}


def _path(example: str, about: str) -> Key:
    return Key(shape="line", example=example, about=about)


_GENERIC: Final = {
    "secret": Key(
        shape="secret",
        required=True,
        example="${DEPLOYS_SECRET}",
        about="What proves a delivery, always by way of an environment variable.",
    ),
    "header": Key(
        shape="line",
        required=True,
        example="X-Signature",
        about="The header with the signature or the token.",
    ),
    "verify": Key(
        shape="line",
        default="hmac",
        choices=("hmac", "token"),
        example="hmac",
        about="Whether the header holds an HMAC of the body in hex, or the secret itself.",
    ),
    "prefix": Key(
        shape="line",
        example="sha256=",
        about="What stands before it in the header (`Bearer`); spaces after it do not count.",
    ),
    "algorithm": Key(
        shape="line",
        default="sha256",
        choices=("sha256", "sha1", "sha512"),
        example="sha512",
        about="The hash of the HMAC.",
    ),
    "event": _path("event.type", "Path to the event's type; without it all are `event`."),
    "sender": _path("actor.name", "Path to whoever did it."),
    "subject": _path("title", "Path to the title."),
    "conversation": _path("build.id", "Path to what the conversation is named by."),
    "body": _path("message.text", "Path to the text."),
    "addressed": _path("owners[*].email", "Path to handles, role names or e-mail addresses."),
    "delivery": _path("id", "Path to the delivery's id, by which a second one is known."),
}

COMPANY_SECTIONS: Final[Mapping[str, Section]] = {
    "company": _COMPANY,
    "unit": _UNIT,
    "role": _ROLE,
    "contact": _CONTACT,
    "handler": _HANDLER,
    "openai": OPENAI,
    "placement": _PLACEMENT,
    "scheduling": SCHEDULING,
    "schedule": SCHEDULE,
    "route": _ROUTE,
    "integrations": _INTEGRATIONS,
    **_SECRETS,
    "mattermost": _MATTERMOST,
    "generic": _GENERIC,
}
