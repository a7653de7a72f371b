"""The `stream.leaf:` block: a node without data of its own, whose server is a leaf of the members.

Its server keeps nothing: it carries what its node says to the members, and back. It proves itself
by a secret of its own, so that whoever has a leaf's host has no word of a member.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from msgspec import Struct

from crewlet.broker.shared_secret import read_secret
from crewlet.broker.tls import CA, check_pem
from crewlet.errors import ConfigError

LEAF_SECRET_VARIABLE: Final = "CREWLET_LEAF_SECRET"  # noqa: S105 - its name

LEAF: Final = "crewlet-leaf"
"""The user that leaves are at the members."""

_URL: Final = re.compile(r"([A-Za-z0-9_.-]+|\[[0-9A-Fa-f:.]+\]):([0-9]{1,5})")


class LeafSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`urls` are the `host:port` where members take leaves: `stream.cluster.leaf_port`. With `ca`
    the members are spoken to over TLS, and have to be signed by it."""

    urls: tuple[str, ...] = ()
    secret: str = ""
    secret_file: str = ""
    ca: str = ""

    def __repr__(self) -> str:
        return f"LeafSettings(urls={self.urls!r})"


class LeafLink(Struct, frozen=True):
    """What a leaf's server is told. `server` is its name at the members, the node's own."""

    server: str
    settings: LeafSettings
    secret: str

    def __repr__(self) -> str:
        return f"LeafLink(server={self.server!r})"

    def files(self) -> dict[str, Path]:
        """Of each link that its server reads, what it leads to."""
        return {CA: Path(self.settings.ca)} if self.settings.ca else {}


def checked_leaf(leaf: LeafSettings) -> None:
    """ConfigError naming the field that cannot be."""
    if not leaf.urls:
        raise ConfigError("stream.leaf.urls is empty: name the members' host:leaf_port")
    for url in leaf.urls:
        found = _URL.fullmatch(url)
        if found is None or not 1 <= int(found[2]) <= 65535:
            # The text itself may carry a password, so it is not repeated.
            raise ConfigError(
                "stream.leaf.urls: each is a host:port, without a scheme and without a user; the "
                f"secret comes from {LEAF_SECRET_VARIABLE} or stream.leaf.secret_file"
            )
    if not leaf.secret and not leaf.secret_file:
        raise ConfigError(
            f"stream.leaf needs the secret that the members take leaves by: set "
            f"{LEAF_SECRET_VARIABLE}, or name a file with stream.leaf.secret_file"
        )


def leaf_link(leaf: LeafSettings, node_id: str) -> LeafLink:
    """With the secret read, and the authority looked at. ConfigError where one cannot be used."""
    if leaf.ca:
        check_pem(Path(leaf.ca), "stream.leaf.ca")
    secret = read_secret(
        leaf.secret,
        leaf.secret_file,
        key="stream.leaf.secret_file",
        variable=LEAF_SECRET_VARIABLE,
    )
    return LeafLink(node_id, leaf, secret)
