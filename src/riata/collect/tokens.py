"""One-time tokens: a signed random number for each invited person, so that one counts once.

A token is 8 random bytes and 16 bytes of their HMAC-SHA-256 under the collector's key. It says
nothing about a person unless somebody writes down who got which, and nothing about a report: the
device draws the report without it. Stores keep a number beside each report that is another HMAC of
the token: equal wherever the token is used, so that merged stores count it once, and without the
key nobody can tell which token it belongs to. A request in hand holds both.
"""

from __future__ import annotations

import base64
import binascii
import contextlib
import hashlib
import hmac
import os
from pathlib import Path

from riata.errors import CollectError
from riata.files import durable

_KEY, _NONCE, _MAC, _NUMBER = 32, 8, 16, 8


class Tokens:
    """Makes and checks the tokens of a task, with a key that is secret of the collector."""

    def __init__(self, key: bytes, task: str) -> None:
        self._key = hmac.digest(key, b"riata tokens " + task.encode(), "sha256")
        self._number_key = hmac.digest(key, b"riata token numbers " + task.encode(), "sha256")

    @classmethod
    def at(cls, path: Path, task: str) -> Tokens:
        """With the key in a file, made if it is not there."""
        if not path.exists():
            _make_key(path.resolve())
        key = path.read_bytes()
        if len(key) != _KEY:
            raise CollectError(
                f"{path} is not a key of tokens: it has {len(key)} bytes, not {_KEY}. Name the "
                "file that `riata collect invite` made."
            )
        return cls(key, task)

    def make(self, n: int) -> list[str]:
        """New tokens, 32 characters each."""
        nonces = (os.urandom(_NONCE) for _ in range(n))
        return [base64.urlsafe_b64encode(nonce + self._mac(nonce)).decode() for nonce in nonces]

    def read(self, token: str) -> int | None:
        """The number that stores know a token by, or None if it is not one of this task."""
        if len(token) != 4 * (_NONCE + _MAC) // 3:
            return None
        try:
            data = base64.b64decode(token.encode(), altchars=b"-_", validate=True)
        except (binascii.Error, ValueError):
            return None
        if len(data) != _NONCE + _MAC or not hmac.compare_digest(
            data[_NONCE:], self._mac(data[:_NONCE])
        ):
            return None
        number = hmac.digest(self._number_key, data[:_NONCE], "sha256")
        return int.from_bytes(number[:_NUMBER], "big")

    def _mac(self, nonce: bytes) -> bytes:
        return hmac.new(self._key, nonce, hashlib.sha256).digest()[:_MAC]


def _make_key(path: Path) -> None:
    """A new key, whole and durable before a token is made; of two makers the first wins."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}-{os.urandom(6).hex()}")
    try:
        durable.write_new(temporary, os.urandom(_KEY))
        with contextlib.suppress(FileExistsError):
            os.link(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)
    durable.sync_directory(path)
