"""What members prove themselves with to each other, and to leaves, where they speak TLS.

The files stay where they are: nats-server is given links from its own folder, so that no user's
path, however long or quoted, has to survive the syntax of its configuration.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from msgspec import Struct

from crewlet.broker.shared_secret import check_private
from crewlet.errors import ConfigError

CERT: Final = "run/tls-cert.pem"
KEY: Final = "run/tls-key.pem"
CA: Final = "run/tls-ca.pem"


class TlsSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """PEM files: a member's certificate and key, and the authority that signed all members'."""

    cert: str
    key: str
    ca: str

    def paths(self) -> dict[str, Path]:
        """Of each link, what it leads to."""
        return {CERT: Path(self.cert), KEY: Path(self.key), CA: Path(self.ca)}


def checked_files(tls: TlsSettings) -> None:
    """ConfigError for a file that cannot be read, or a key that others may read."""
    for name in ("cert", "key", "ca"):
        check_pem(Path(getattr(tls, name)), f"stream.cluster.tls.{name}")
    check_private(Path(tls.key), "stream.cluster.tls.key")


def check_pem(path: Path, key: str) -> None:
    """ConfigError for what is no PEM file that we can read."""
    try:
        if b"-----BEGIN " not in path.read_bytes():
            raise ConfigError(f"{key} {path} is no PEM file")
    except OSError as error:
        raise ConfigError(f"{key} {path} cannot be read: {type(error).__name__}") from None


def link_files(folder: Path, paths: dict[str, Path]) -> None:
    """Put the links into the server's folder, in place of those of an earlier boot."""
    for name in (CERT, KEY, CA):
        (folder / name).unlink(missing_ok=True)
    for name, path in paths.items():
        (folder / name).symlink_to(path.absolute())
