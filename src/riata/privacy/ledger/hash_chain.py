"""The keyed hash chain through a ledger's entries.

The proof and the order of writes are in docs/privacy/ledger.md.
"""

from __future__ import annotations

import hmac
import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from riata.errors import LedgerError

KEY_BYTES = 32
MAC_DIGITS = 64
_LABEL = "riata ledger"

Fields = Sequence[object]
#: The fields of one entry, and the mac that stands beside them.
Entry = tuple[Fields, object]


@dataclass(frozen=True)
class Head:
    """The key of a chain, and the last entry of it that was seen."""

    dataset: str
    key: bytes = field(repr=False)
    seq: int
    mac: str


def new_head(dataset: str, header: Fields) -> Head:
    """A new key, and the chain that has only its header."""
    key = os.urandom(KEY_BYTES)
    return Head(dataset, key, 0, _header_mac(key, header))


def skip_link(seq: int) -> int:
    """The earlier entry that entry `seq` is linked to, beside the one before it.

    The lowest bit of the number is cleared. So a few links lead from any entry to any earlier one.
    """
    return seq & (seq - 1)


def link_path(last: int, seq: int) -> Iterator[int]:
    """The entries whose links lead from entry `last` back to entry `seq`, both included."""
    while last > seq:
        yield last
        last = skip_link(last) if skip_link(last) >= seq else last - 1
    yield seq


def linked_to(seqs: Iterable[int]) -> set[int]:
    """The entries whose macs go into the macs of these."""
    return {before for seq in seqs for before in (seq - 1, skip_link(seq))}


def next_head(head: Head, macs: Mapping[int, object], fields: Fields) -> Head:
    """The head after one entry more. `macs` has that of the entry to which it is linked."""
    seq = head.seq + 1
    mac = _entry_mac(head.key, {**macs, head.seq: head.mac}, seq, fields)
    return replace(head, seq=seq, mac=mac)


def is_genuine(key: bytes, macs: Mapping[int, object], seq: int, entry: Entry) -> bool:
    """Whether riata wrote this entry at this place behind entries with these macs."""
    fields, mac = entry
    try:
        return fields[0] == seq and _same(mac, _entry_mac(key, macs, seq, fields))
    except LedgerError:  # a value that riata never writes
        return False


def verify(
    head: Head,
    header: Entry,
    entries: Sequence[Entry],
    where: str,
    *,
    start: int = 1,
    before: Mapping[int, object] | None = None,
) -> Head:
    """The head of all these entries, or an error if they do not continue the one that was seen.

    Entries beyond the head are a colleague's, or were written by a process that died before it
    could move the head. Their macs prove that they are genuine.

    The entries go from number `start`, at most what the head has seen, or 1, to the last. `before`
    has the stored macs of earlier entries to which these are linked. They need no trust: a wrong
    one does not lead to the macs of these entries.
    """
    fields, mac = header
    if not _same(mac, _header_mac(head.key, fields)):
        raise LedgerError(
            f"The header of the ledger {where} was edited, or the head belongs to another ledger: "
            f"they do not match, so nothing can be spent. {_RESTORE}"
        )
    macs = {**(before or {}), 0: mac}
    for seq, entry in enumerate(entries, start):
        if not is_genuine(head.key, macs, seq, entry):
            raise LedgerError(
                f"Entry {seq} of the ledger {where} was edited, moved or removed: it does not "
                f"continue the chain before it, so nothing can be spent. {_RESTORE}"
            )
        macs[seq] = entry[1]
    last = start + len(entries) - 1
    if last < head.seq:
        raise LedgerError(
            f"The ledger {where} was rolled back: it has {last} entries, and its head has seen "
            f"{head.seq}. What was spent is not all there, so nothing can be spent. {_RESTORE}"
        )
    if not _same(macs.get(head.seq), head.mac):
        raise LedgerError(
            f"The ledger {where} was rolled back: its entry {head.seq} is not the one that its "
            f"head has seen, so nothing can be spent. {_RESTORE}"
        )
    return replace(head, seq=last, mac=str(macs.get(last)))


_RESTORE = "Put back the newest ledger and the head that belongs to it."


def _header_mac(key: bytes, header: Fields) -> str:
    return _mac(key, _canonical([_LABEL, *header]))


def _entry_mac(key: bytes, macs: Mapping[int, object], seq: int, fields: Fields) -> str:
    links = (macs.get(seq - 1), macs.get(skip_link(seq)))
    if any(not isinstance(link, str) or len(link) != MAC_DIGITS for link in links):
        raise _edited()  # and no link is ever taken for the label of a header
    return _mac(key, _canonical([*links, *fields]))


def _canonical(fields: Fields) -> bytes:
    """The bytes of one entry: different fields, in value or in type, give different bytes."""
    if not all(value is None or type(value) in (int, str) for value in fields):
        raise _edited()
    return json.dumps(list(fields), separators=(",", ":")).encode("ascii")


def _edited() -> LedgerError:
    return LedgerError(
        "An entry of the ledger holds a value of a kind that riata never writes: it was edited or "
        f"damaged, so nothing can be spent. {_RESTORE}"
    )


def _mac(key: bytes, message: bytes) -> str:
    return hmac.digest(key, message, "sha256").hex()


def _same(found: object, expected: str) -> bool:
    return hmac.compare_digest(str(found).encode(errors="replace"), expected.encode())
