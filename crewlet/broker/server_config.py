"""The configuration of an embedded server, as text.

Every path in it is relative to the folder that the server runs in, so that no user's path, however
long or quoted, has to survive nats-server's configuration syntax.
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from crewlet.broker.cluster import MEMBER, Membership
from crewlet.broker.dial import HEADROOM_BYTES, RECORD_BYTES
from crewlet.broker.domain import DOMAIN
from crewlet.broker.leaf import LEAF, LeafLink
from crewlet.broker.server_files import LOG, RUN, SCRATCH
from crewlet.broker.settings import Sync
from crewlet.broker.tls import CA, CERT, KEY

PAYLOAD_BYTES: Final = RECORD_BYTES + 4 * HEADROOM_BYTES
LEAF_PAYLOAD_BYTES: Final = 2 * RECORD_BYTES
"""A record that is asked for comes as base64 inside of JSON, a third longer. Between a leaf and a
member one that is too long does not fail: it breaks their connection (measured)."""

_BASE: Final = """\
host: "{host}"
port: {port}
ports_file_dir: "{run}"
logfile: "{log}"
logfile_size_limit: 8388608
logfile_max_num: 3
max_payload: {max_payload}
max_pending: 268435456
ping_interval: "5s"
ping_max: 2
authorization {{
  users: [{users}]
}}
"""
# A client that was stopped is let go of after 15 s: until then its parked pulls swallow mail.

_JETSTREAM: Final = """\
jetstream {{
  store_dir: "{store}"
  sync_interval: {sync}
{domain}}}
"""

_NAME: Final = 'server_name: "{server}"\n'

_CLUSTER: Final = """\
cluster {{
  name: "{name}"
  host: "{host}"
  port: {port}
  # What the others' clients dial is theirs: its credentials are of another boot.
  no_advertise: true
  authorization {{ user: "{user}", password: "{password}", timeout: 5 }}
  routes: [{routes}]
{tls}}}
"""

_LEAVES: Final = """\
leafnodes {{
  host: "{host}"
  port: {port}
  no_advertise: true
  authorization {{ user: "{user}", password: "{password}", timeout: 5 }}
{tls}}}
"""

_REMOTE: Final = """\
leafnodes {{
  reconnect: "{again}"
  remotes: [{{
    urls: [{urls}]
{tls}  }}]
}}
"""

AGAIN: Final = "250ms"
"""How soon a leaf dials another member."""

_BOTH_PROVE: Final = f"""\
  tls {{ cert_file: "{CERT}", key_file: "{KEY}", ca_file: "{CA}", verify: true, timeout: 5 }}
"""
# The handshake comes first: no secret is ever said to somebody who was not looked at.
_MEMBER_PROVES: Final = f"""\
  tls {{ cert_file: "{CERT}", key_file: "{KEY}", handshake_first: true, timeout: 5 }}
"""
_LEAF_LOOKS: Final = f"""\
    tls {{ ca_file: "{CA}", handshake_first: true, timeout: 5 }}
"""


class Plan(Struct, frozen=True):
    """One server. `sync` None keeps nothing: streams live in memory, the folder is scratch; a
    `leaf` keeps no streams at all."""

    user: str
    password: str
    sync: Sync | None = "always"
    member: Membership | None = None
    leaf: LeafLink | None = None

    def __repr__(self) -> str:
        return f"Plan(member={self.member!r}, leaf={self.leaf!r})"

    @property
    def host(self) -> str:
        """Where clients reach it: this machine only, unless nodes without data dial it."""
        member = self.member
        return member.settings.host if member and member.settings.client_port else "127.0.0.1"

    @property
    def wanted_port(self) -> int:
        """Any, unless others have to find it."""
        return (self.member.settings.client_port if self.member else 0) or -1


def configuration(plan: Plan, port: int) -> str:
    """The text. It holds secrets: for a file that only we may read."""
    users, member = {plan.user: plan.password}, plan.member
    if member is not None and member.settings.client_port:
        users[MEMBER] = member.secret
    far = plan.leaf is not None or (member is not None and bool(member.leaf_secret))
    text = _BASE.format(
        host=plan.host,
        port=port,
        run=RUN,
        log=LOG,
        max_payload=LEAF_PAYLOAD_BYTES if far else PAYLOAD_BYTES,
        users=", ".join(f'{{user: "{one}", password: "{its}"}}' for one, its in users.items()),
    )
    if plan.leaf is not None:
        return text + _remote(plan.leaf)
    return text + _jetstream(plan.sync, domain=far) + (_member(member) if member else "")


def _jetstream(sync: Sync | None, *, domain: bool) -> str:
    return _JETSTREAM.format(
        store=SCRATCH if sync is None else ".",
        sync="always" if sync == "always" else '"2m"',
        domain=f'  domain: "{DOMAIN}"\n' if domain else "",
    )


def _member(member: Membership) -> str:
    text = _NAME.format(server=member.server)
    if member.routed:
        text += _cluster(member)
    return text + (_leaves(member) if member.leaf_secret else "")


def _cluster(member: Membership) -> str:
    settings, password = member.settings, member.route_password
    return _CLUSTER.format(
        name=settings.name,
        host=settings.host,
        port=settings.port,
        user=MEMBER,
        password=password,
        routes=", ".join(f'"nats-route://{MEMBER}:{password}@{peer}"' for peer in settings.peers),
        tls=_BOTH_PROVE if settings.tls else "",
    )


def _leaves(member: Membership) -> str:
    return _LEAVES.format(
        host=member.settings.host,
        port=member.settings.leaf_port,
        user=LEAF,
        password=member.leaf_secret,
        tls=_MEMBER_PROVES if member.settings.tls else "",
    )


def _remote(leaf: LeafLink) -> str:
    scheme = "tls" if leaf.settings.ca else "nats-leaf"
    urls = (f'"{scheme}://{LEAF}:{leaf.secret}@{url}"' for url in leaf.settings.urls)
    return _NAME.format(server=leaf.server) + _REMOTE.format(
        again=AGAIN,
        urls=", ".join(urls),
        tls=_LEAF_LOOKS if leaf.settings.ca else "",
    )
