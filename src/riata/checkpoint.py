"""What a fit released so far, on disk: enough to go on after a crash, and nothing else.

A release is written down before anybody sees it. A fit that goes on takes what was released before
from the file and not from the rows, and so arrives where it was. The noise of each release follows
from a secret key of the run, from the request, from the rows and from all releases before it, so a
copy of the file that goes on too repeats the same releases and adds none. Proofs are in
docs/privacy/checkpoint.md.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import hmac
import itertools
import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from riata.errors import CheckpointError
from riata.files import durable
from riata.grid import MOST_ROWS
from riata.identity import digest
from riata.mechanisms.noise import Noise
from riata.privacy.budget import REPLACE_ONE
from riata.privacy.events import Event, to_json
from riata.queries import RowDigest
from riata.release_text import release_from_text, release_to_text

VERSION = 3

#: The length of a key, and of the code of the rows behind it.
_KEY_BYTES, _CODE_DIGITS = 32, 64

#: Facts that follow from others: an error names them only where they differ alone.
_DERIVED = (
    "bounds of releases", "budget", "event", "extra releases", "parts", "problems", "projection",
    "steps",
)  # fmt: skip

_CHARGED = "What was charged stays charged, and nothing more was released."


class Checkpoint:
    """The releases of one run, in order, in the file `path`.

    Beside it, with ``.key`` at the end, lies the key of the run until it is over. `request` is the
    digest of the request, and a file of another one is refused; `facts` has a digest of each of its
    facts, so that an error can name those that differ. A `seed` is a public key, for tests only.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        request: str,
        facts: Mapping[str, str],
        seed: int | None = None,
    ) -> None:
        self.path, self._seed = Path(path), seed
        self.request, self._facts = request, dict(facts)
        self._rows = ""  # the code of the rows
        self._key_path = self.path.with_name(self.path.name + ".key")
        self._records: list[dict[str, Any]] = []
        self._next = 0
        self._key: bytes | None = None
        self._link, self.run_id = b"", ""
        self.over = False
        self._file = self._locked()
        try:
            if self._size() > 0:
                self._read()
            else:
                self._begin()
        except BaseException:
            self._file.close()
            raise

    # The rows

    @property
    def needs_rows(self) -> bool:
        """Whether anything may still be released: the key of a run that is over was destroyed."""
        return self._key is not None

    def row_digest(self) -> RowDigest:
        """What is to be summed over every view of the rows for `code_of`."""
        return RowDigest(self._keyed(b"digest"), MOST_ROWS, REPLACE_ONE)

    def code_of(self, totals: Mapping[str, np.ndarray]) -> str:
        """The code of the rows whose views, by name, have these sums of `row_digest`."""
        each = sorted(totals.items())
        parts = [(name.encode(), np.asarray(found, "<i8").tobytes()) for name, found in each]
        return self._keyed(b"rows", *itertools.chain(*parts)).hex()

    def bind(self, code: str, record: Callable[[str], str] | None = None) -> None:
        """Go on only with the rows that the run began with, by their code.

        `record` tells a ledger of it, and returns what the ledger has. The files are asked first,
        so that a ledger is told of no other rows, and a file alone is not believed: a copy may
        have met other rows without the ledger.
        """
        self._check_code(code, self._rows)
        if record is not None:
            self._check_code(code, record(code))
        if not self._rows:
            self._rows = code
            if self._seed is None:
                self._write_key(code.encode(), _KEY_BYTES)

    def _check_code(self, code: str, known: str) -> None:
        if known and not hmac.compare_digest(known, code):
            raise CheckpointError(
                f"{self.path} belongs to a run over other rows. {_CHARGED} Go on with the rows "
                "that the run began with, or name another file for these."
            )

    # One release after the other

    def known(self, event: Event) -> tuple[bool, Any]:
        """Whether the next release is in the file, and what it was."""
        if self._next == len(self._records):
            return False, None
        record = self._records[self._next]
        if record["event"] != to_json(event):
            raise CheckpointError(
                f"{self.path} has another release in this place than the plan. {_CHARGED} Use the "
                "checkpoint with the same estimator and the same version of riata."
            )
        self._next += 1
        return True, release_from_text(record["value"])

    def key_for(self, what: str) -> bytes | None:
        """A secret that stays the same while the run lasts; None when it is over."""
        return None if self._key is None else self._keyed(b"for", what.encode())

    def noise(self, query: Any = None) -> Noise:
        """The noise of the next release, which is not in the file: another one for each query."""
        if self._key is None:
            raise CheckpointError(
                f"{self.path} is of a run that is over, and this one asks for more releases. "
                f"{_CHARGED} Use it with the same estimator and the same version of riata."
            )
        about = (self._link, self._rows.encode(), digest(query).encode())
        return Noise(self._seed, key=self._keyed(b"noise", *about))

    def keep(self, event: Event, value: Any) -> None:
        """Write a release down, so that nothing can undo it."""
        record = {"event": to_json(event), "value": release_to_text(value)}
        if not self._records:
            record["rows"] = self._rows
        self._append(record)
        self._records.append(record)
        self._next += 1

    def close(self, over: bool = False) -> None:
        """Let go of the file. A run that is `over` needs its key no more, and it is destroyed."""
        if over and self._key is not None:
            if not self.over:
                self._append({"over": self._digest(self._size())})
            if self._seed is None:
                _destroy(self._key_path, self._key)
        self._file.close()

    # The file

    def _locked(self) -> Any:
        try:
            # Without a buffer, or what could not be written would be tried again at the end.
            file = open(self.path, "a+b", buffering=0, opener=_for_the_owner)  # noqa: SIM115
            alone = durable.lock(file.fileno())
        except OSError as problem:
            raise CheckpointError(
                f"{self.path} cannot be opened ({problem.strerror}): a checkpoint needs a file "
                "that can be written. Name another one."
            ) from None
        if not alone:
            file.close()
            raise CheckpointError(
                f"{self.path} is used by another run: two could release twice what was paid for "
                "once. Wait until it is over, or stop it."
            )
        return file

    def _size(self) -> int:
        return os.fstat(self._file.fileno()).st_size

    def _append(self, record: dict[str, Any]) -> None:
        body = json.dumps(record, sort_keys=True, separators=(",", ":"))
        link = self._keyed(self._link, body.encode())
        begin = self._size()
        try:
            left = memoryview(f"{link.hex()} {body}\n".encode())
            while left:
                left = left[self._file.write(left) :]
            os.fsync(self._file.fileno())
        except OSError as problem:
            with contextlib.suppress(OSError):  # reading cuts off what was written in part, too
                os.truncate(self._file.fileno(), begin)
            why = "the disk is full" if problem.errno == errno.ENOSPC else problem.strerror
            raise CheckpointError(
                f"{self.path} cannot be written ({why}), so the last release was not used. "
                f"{_CHARGED} Make room, then fit again with the same checkpoint."
            ) from None
        self._link = link

    def _begin(self) -> None:
        self._key = self._public_key() if self._seed is not None else os.urandom(_KEY_BYTES)
        if self._seed is None:
            self._write_key(self._key, 0)
        self._start()
        self._append(
            {"riata checkpoint": VERSION, "id": self.run_id, "request": self.request,
             "facts": self._facts, "seed": self._seed}
        )  # fmt: skip
        durable.sync_directory(self.path)

    def _start(self) -> None:
        """The beginning of the chain and the run's id, from the key and the request."""
        name = self.request.encode()
        self._link = self._keyed(b"run", name)
        self.run_id = self._keyed(b"id", name).hex()[:32]

    def _read(self) -> None:
        self._file.seek(0)
        text = self._file.read()
        whole = text.rfind(b"\n") + 1  # what follows was never seen by anybody
        lines = text[:whole].splitlines()
        if not lines:
            raise self._damaged("its beginning is missing")
        self._check(self._parsed(lines[0], 1)[1])
        self._key = self._read_key(lines, text[:whole])
        if self._key is not None:
            self._start()
        for i, line in enumerate(lines):
            link, record = self._parsed(line, i + 1)
            if self._key is not None:
                if i == 0 and record.get("id") != self.run_id:
                    raise self._damaged("its id is not that of its key")
                self._link = self._keyed(self._link, line.partition(b" ")[2])
                if not hmac.compare_digest(link, self._link.hex().encode()):
                    raise self._damaged(f"line {i + 1} is not what was written")
            if "over" in record:
                self.over = True
            elif i > 0:
                self._rows = record.get("rows", self._rows)
                self._records.append(record)
        if whole < len(text):
            os.truncate(self._file.fileno(), whole)

    def _parsed(self, line: bytes, number: int) -> tuple[bytes, dict[str, Any]]:
        link, _, body = line.partition(b" ")
        try:
            record = json.loads(body)
        except (ValueError, RecursionError):
            record = None
        if not isinstance(record, dict):
            raise self._damaged(f"line {number} is not what was written")
        return link, record

    def _check(self, first: dict[str, Any]) -> None:
        if first.get("riata checkpoint") != VERSION:
            raise CheckpointError(
                f"{self.path} was written by another version of riata, which may mean something "
                f"else by it. {_CHARGED} Finish the run with that version."
            )
        recorded = first.get("facts")
        if first.get("request") != self.request or first.get("seed") != self._seed:
            known = recorded if isinstance(recorded, dict) else {}
            names = {*known, *self._facts}
            different = sorted(k for k in names if known.get(k) != self._facts.get(k))
            named = [k for k in different if k not in _DERIVED]
            fields = ", ".join(named or different or ["random_state"])
            raise CheckpointError(
                f"{self.path} belongs to another run: {fields} differ. Go on with the parameters "
                "of that run, or name another file for this one."
            )

    def _damaged(self, how: str) -> CheckpointError:
        return CheckpointError(
            f"{self.path} is damaged: {how}. {_CHARGED} Restore the file from a copy, or fit anew "
            "with another file, which is charged anew."
        )

    # The key

    def _keyed(self, *parts: bytes) -> bytes:
        assert self._key is not None
        code = hmac.new(self._key, digestmod=hashlib.sha256)
        for part in parts:
            code.update(len(part).to_bytes(8, "big") + part)
        return code.digest()

    def _write_key(self, text: bytes, at: int) -> None:
        """The key, or behind it the code of the rows, once they are known."""
        try:
            how = ("r+b", _no_link) if at else ("wb", _new_for_the_owner)
            with open(self._key_path, how[0], opener=how[1]) as file:
                file.seek(at)
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            durable.sync_directory(self.path)
        except OSError as problem:
            raise CheckpointError(
                f"{self._key_path} cannot be written ({problem.strerror}): without its key a run "
                "cannot go on. Make room, or name another file."
            ) from None

    def _read_key(self, lines: list[bytes], written: bytes) -> bytes | None:
        """The key, or None for a run that is over, whose last line says what the others are."""
        if self._seed is not None:
            return self._public_key()
        try:
            text = self._key_path.read_bytes()
            code = text[_KEY_BYTES:].decode("ascii", "replace")
            self._rows = code if len(code) == _CODE_DIGITS else ""  # a crash may have cut it
            return text[:_KEY_BYTES]
        except OSError:
            end = b'{"over":"' + self._digest(len(written) - len(lines[-1]) - 1).encode() + b'"}'
            if lines[-1].endswith(b" " + end):
                return None
            raise CheckpointError(
                f"{self._key_path} is missing: it is the key of the run in {self.path}, and "
                f"without it the run cannot go on. {_CHARGED} Put it back, or fit anew "
                "with another file, which is charged anew."
            ) from None

    def _digest(self, size: int) -> str:
        """Of the beginning of the file."""
        self._file.seek(0)
        return hashlib.sha256(self._file.read()[:size]).hexdigest()

    def _public_key(self) -> bytes:
        return hashlib.sha256(f"riata test seed {self._seed}, run".encode()).digest()


def _for_the_owner(path: str, flags: int) -> int:
    return os.open(path, flags | durable.NO_FOLLOW, 0o600)


def _new_for_the_owner(path: str, flags: int) -> int:
    """A new file: one that somebody put there before could be read by others."""
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)
    return os.open(path, flags | os.O_EXCL | durable.NO_FOLLOW, 0o600)


def _no_link(path: str, flags: int) -> int:
    return os.open(path, flags | durable.NO_FOLLOW)


def _destroy(path: Path, key: bytes) -> None:
    """Overwrite and remove the file of a key, if it is there and still of this run."""
    with contextlib.suppress(FileNotFoundError), open(path, "r+b", opener=_no_link) as file:
        if file.read(_KEY_BYTES) != key:
            return
        if os.name != "nt":  # first: a crash in between must not leave a file of zeros
            path.unlink()
        file.seek(0)
        file.write(bytes(os.fstat(file.fileno()).st_size))
        file.flush()
        os.fsync(file.fileno())
    if os.name == "nt":  # where a file that is open cannot be removed
        path.unlink(missing_ok=True)
