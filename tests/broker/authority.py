"""Certificates for servers on the loopback, by authorities that are made for one test."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from crewlet.broker.tls import TlsSettings

needs_openssl = pytest.mark.skipif(
    shutil.which("openssl") is None, reason="no openssl here to make an authority with"
)


class Authority:
    """One that signs for 127.0.0.1, with its files in `folder`."""

    def __init__(self, folder: Path, name: str) -> None:
        self._folder = folder
        self._name = name
        self.ca = folder / f"{name}.pem"
        _openssl(
            *("req", "-x509", *_NEW, "-days", "2", "-subj", f"/CN={name}"),
            *("-keyout", folder / f"{name}.key", "-out", self.ca),
        )

    def signed(self, member: str) -> TlsSettings:
        """What a member is given."""
        cert, key = (self._folder / f"{self._name}-{member}.{end}" for end in ("pem", "key"))
        request, names = cert.with_suffix(".csr"), cert.with_suffix(".ext")
        names.write_text("subjectAltName = IP:127.0.0.1, DNS:localhost\n")
        _openssl("req", *_NEW, "-subj", f"/CN={member}", "-keyout", key, "-out", request)
        _openssl(
            *("x509", "-req", "-in", request, "-CA", self.ca, "-days", "2", "-CAcreateserial"),
            *("-CAkey", self._folder / f"{self._name}.key", "-extfile", names, "-out", cert),
        )
        key.chmod(0o600)
        return TlsSettings(cert=str(cert), key=str(key), ca=str(self.ca))


_NEW = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")


def _openssl(*words: str | Path) -> None:
    subprocess.run(["openssl", *map(str, words)], check=True, capture_output=True)
