"""A secret that several hosts share: from the environment, or from a file that only we may read."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from crewlet.errors import ConfigError

_SECRET: Final = re.compile(r"[A-Za-z0-9_-]{16,256}")


def read_secret(value: str, file: str, *, key: str, variable: str) -> str:
    """The value, or what the file at `key` holds. ConfigError where neither can be used; the
    secret itself is in no error."""
    secret = value or _held(Path(file), key)
    if _SECRET.fullmatch(secret) is None:
        raise ConfigError(
            f"the secret of {file or variable} must be 16 to 256 letters, digits, '-' and '_': "
            "openssl rand -hex 32 makes one"
        )
    return secret


def check_private(path: Path, key: str) -> None:
    """ConfigError for a file that others may read. OSError where it is not there."""
    if path.stat().st_mode & 0o077:
        raise ConfigError(f"others may read {key} {path}: chmod 600 it")


def _held(path: Path, key: str) -> str:
    try:
        check_private(path, key)
        return path.read_text().strip()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{key} {path} cannot be read: {type(error).__name__}") from None
