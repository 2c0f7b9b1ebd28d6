"""The keyed chain through a ledger's lines, and the head that remembers how far it went.

The proof and the order of writes are in docs/privacy/ledger.md.
"""

from __future__ import annotations

import hmac
import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from riata.errors import LedgerError
from riata.files import durable

KEY_BYTES = 32
_MAC_DIGITS = 64
_VERSION = 1
_LABEL = "riata ledger"

Fields = Sequence[object]
#: The fields of one line, and the mac that stands beside them.
Line = tuple[Fields, object]


@dataclass(frozen=True)
class Head:
    """The key of a chain, and the last line of it that was seen."""

    dataset: str
    key: bytes = field(repr=False)
    seq: int
    mac: str


def new_head(dataset: str, header: Fields) -> Head:
    """A new key, and the chain that has only its header."""
    key = os.urandom(KEY_BYTES)
    return Head(dataset, key, 0, _header_mac(key, header))


def skipped(seq: int) -> int:
    """The earlier line that line `seq` is linked to, beside the one before it.

    The lowest bit of the number is cleared. So a few links lead from any line to any earlier one.
    """
    return seq & (seq - 1)


def path(last: int, seq: int) -> Iterator[int]:
    """The lines whose links lead from line `last` back to line `seq`, both included."""
    while last > seq:
        yield last
        last = skipped(last) if skipped(last) >= seq else last - 1
    yield seq


def needed(seqs: Iterable[int]) -> set[int]:
    """The lines whose macs go into the macs of these."""
    return {before for seq in seqs for before in (seq - 1, skipped(seq))}


def following(head: Head, macs: Mapping[int, object], fields: Fields) -> Head:
    """The head after one line more. `macs` has that of the line to which it is linked."""
    seq = head.seq + 1
    mac = _line_mac(head.key, {**macs, head.seq: head.mac}, seq, fields)
    return replace(head, seq=seq, mac=mac)


def genuine(key: bytes, macs: Mapping[int, object], seq: int, line: Line) -> bool:
    """Whether riata wrote this line at this place behind lines with these macs."""
    fields, mac = line
    try:
        return fields[0] == seq and _same(mac, _line_mac(key, macs, seq, fields))
    except LedgerError:  # a value that riata never writes
        return False


def verify(
    head: Head,
    header: Line,
    lines: Sequence[Line],
    where: str,
    *,
    start: int = 1,
    before: Mapping[int, object] | None = None,
) -> Head:
    """The head of all these lines, or an error if they do not continue the one that was seen.

    Lines beyond the head are a colleague's, or were written by a process that died before it could
    move the head. Their macs prove that they are genuine.

    Parameters
    ----------
    head : Head
        What was seen.
    header : Line
    lines : sequence of Line
        From number `start` to the last.
    where : str
        The ledger, for messages.
    start : int, default=1
        At most what the head has seen, or 1.
    before : mapping, optional
        The macs, as they are stored, of earlier lines to which these are linked. They need no
        trust: a wrong one does not lead to the macs of these lines.
    """
    fields, mac = header
    if not _same(mac, _header_mac(head.key, fields)):
        raise LedgerError(
            f"The header of the ledger {where} was edited, or the head belongs to another ledger: "
            f"they do not match, so nothing can be spent. {_RESTORE}"
        )
    macs = {**(before or {}), 0: mac}
    for seq, line in enumerate(lines, start):
        if not genuine(head.key, macs, seq, line):
            raise LedgerError(
                f"Charge {seq} of the ledger {where} was edited, moved or removed: it does not "
                f"continue the chain before it, so nothing can be spent. {_RESTORE}"
            )
        macs[seq] = line[1]
    last = start + len(lines) - 1
    if last < head.seq:
        raise LedgerError(
            f"The ledger {where} was rolled back: it has {last} charges, and its head has seen "
            f"{head.seq}. What was spent is not all there, so nothing can be spent. {_RESTORE}"
        )
    if not _same(macs.get(head.seq), head.mac):
        raise LedgerError(
            f"The ledger {where} was rolled back: its charge {head.seq} is not the one that its "
            f"head has seen, so nothing can be spent. {_RESTORE}"
        )
    return replace(head, seq=last, mac=str(macs.get(last)))


_RESTORE = "Put back the newest ledger and the head that belongs to it."


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
            if (version, type(dataset), type(seq), len(key)) != (_VERSION, str, int, KEY_BYTES):
                raise ValueError("fields")
            if len(bytes.fromhex(mac)) * 2 != _MAC_DIGITS or seq < 0:
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
        "version": _VERSION,
        "dataset": head.dataset,
        "key": head.key.hex(),
        "seq": head.seq,
        "mac": head.mac,
    }
    return f"{json.dumps(fields, indent=1)}\n".encode("ascii")


def _header_mac(key: bytes, header: Fields) -> str:
    return _mac(key, _canonical([_LABEL, *header]))


def _line_mac(key: bytes, macs: Mapping[int, object], seq: int, fields: Fields) -> str:
    links = (macs.get(seq - 1), macs.get(skipped(seq)))
    if any(not isinstance(link, str) or len(link) != _MAC_DIGITS for link in links):
        raise _edited()  # and no link is ever taken for the label of a header
    return _mac(key, _canonical([*links, *fields]))


def run_rows_mac(key: bytes, dataset: str, run: str, code: str) -> str:
    """What shows that a ledger itself recorded the code of a run's rows."""
    return _mac(key, b"rows of a run" + _canonical((dataset, run, code)))


def _canonical(fields: Fields) -> bytes:
    """The bytes of one line: different fields, in value or in type, give different bytes."""
    if not all(value is None or type(value) in (int, str) for value in fields):
        raise _edited()
    return json.dumps(list(fields), separators=(",", ":")).encode("ascii")


def _edited() -> LedgerError:
    return LedgerError(
        "A line of the ledger holds a value of a kind that riata never writes: it was edited or "
        f"damaged, so nothing can be spent. {_RESTORE}"
    )


def _mac(key: bytes, message: bytes) -> str:
    return hmac.digest(key, message, "sha256").hex()


def _same(found: object, expected: str) -> bool:
    return hmac.compare_digest(str(found).encode(errors="replace"), expected.encode())
