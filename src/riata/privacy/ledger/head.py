"""The head of a ledger: the key of its chain, and the last entry that was seen, in a file apart."""

from __future__ import annotations

import json
import os
from pathlib import Path

from riata.errors import LedgerError
from riata.files import durable
from riata.privacy.ledger.hash_chain import KEY_BYTES, MAC_DIGITS, Head

#: Of the file below.
VERSION = 1


class HeadInMemory:
    """The head of a ledger that lives and dies with its process."""

    path = None

    def __init__(self, head: Head) -> None:
        self._head = head

    def read(self) -> Head:
        return self._head

    def write(self, head: Head) -> None:
        self._head = head


class HeadFile:
    """The head in a file that is replaced whole, or not at all."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = os.path.realpath(path)  # a link stays a link when the file is replaced

    def create(self, head: Head) -> None:
        """Write the first head where there is no file."""
        try:
            durable.create(self.path, _content(head))
        except FileExistsError:
            raise LedgerError(
                f"{self.path} exists: it may be the head of another ledger, which would be useless "
                "without it. Choose another place with head=."
            ) from None
        except OSError as error:
            raise LedgerError(
                f"The head {self.path} cannot be created ({error.strerror}). "
                "Choose a directory that you can write to with head=."
            ) from None

    def read(self) -> Head:
        try:
            text = Path(self.path).read_text(encoding="ascii")
        except FileNotFoundError:
            raise LedgerError(
                f"The head {self.path} is missing. Without it nobody can tell whether the ledger "
                "was edited or rolled back, so nothing can be spent. Put the file back, or say "
                "with head= where it is."
            ) from None
        except OSError as error:
            raise LedgerError(
                f"The head {self.path} cannot be read ({error.strerror}), so nothing can be spent. "
                "Check its owner and its permissions."
            ) from None
        except ValueError:
            raise self._unreadable() from None
        try:
            content = json.loads(text)
            version, dataset, seq = content["version"], content["dataset"], content["seq"]
            key, mac = bytes.fromhex(content["key"]), content["mac"]
            if (version, type(dataset), type(seq), len(key)) != (VERSION, str, int, KEY_BYTES):
                raise ValueError("fields")
            if len(bytes.fromhex(mac)) * 2 != MAC_DIGITS or seq < 0:
                raise ValueError("mac")
        except (ValueError, KeyError, TypeError):
            raise self._unreadable() from None
        return Head(dataset, key, seq, mac)

    def write(self, head: Head) -> None:
        """Replace the file. Durable when this returns; before, the old file is there.

        Only whoever holds the database's write lock may call this: heads then never go back.
        """
        try:
            durable.replace(self.path, _content(head))
        except OSError as error:
            raise LedgerError(
                f"The head {self.path} cannot be written ({error.strerror}), so nothing can be "
                "spent; what was charged stays charged. Check that its directory is writable and "
                "that the disk has room."
            ) from None

    def _unreadable(self) -> LedgerError:
        return LedgerError(
            f"{self.path} is not the head of a ledger that this version of riata can read, so "
            "nothing can be spent. Check the path, or put back a copy of the head."
        )


def _content(head: Head) -> bytes:
    fields = {
        "version": VERSION,
        "dataset": head.dataset,
        "key": head.key.hex(),
        "seq": head.seq,
        "mac": head.mac,
    }
    return f"{json.dumps(fields, indent=1)}\n".encode("ascii")
