"""What proves that a delivery is the vendor's: a signature over its bytes, or a token.

Everything is compared in constant time, and an empty secret proves nothing.
"""

from __future__ import annotations

import hashlib
import hmac


def signed(stated: str, body: bytes, secret: bytes, *, prefix: str = "sha256=") -> bool:
    """Whether `stated` is `prefix` and the hex of the HMAC-SHA256 of exactly these bytes."""
    digest = prefix + hmac.new(secret, body, hashlib.sha256).hexdigest()
    matches = hmac.compare_digest(stated.encode("utf-8", "replace"), digest.encode())
    return matches and bool(secret)


def is_token(stated: str, secret: bytes) -> bool:
    """Whether `stated` is the secret itself. Digests are compared: no length shows.

    A header's bytes arrive as Latin-1, a URL's as UTF-8.
    """
    wanted = hashlib.sha256(secret).digest()
    as_header = hashlib.sha256(stated.encode("latin-1", "replace")).digest()
    as_url = hashlib.sha256(stated.encode("utf-8", "replace")).digest()
    matches = hmac.compare_digest(as_header, wanted) | hmac.compare_digest(as_url, wanted)
    return matches and bool(secret)
