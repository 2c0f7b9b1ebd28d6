"""The reports that a device has drawn: each is drawn once, and sent again as the same bytes."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import tempfile
from contextlib import closing
from pathlib import Path
from typing import NoReturn

from riata.errors import InvalidArgument
from riata.files.durable import sync_directory
from riata.local.report_format import REPORT_BYTES

_TABLE = """
CREATE TABLE report (
    task TEXT NOT NULL, occasion INTEGER NOT NULL, report BLOB NOT NULL,
    PRIMARY KEY (task, occasion)
) WITHOUT ROWID
"""
#: How long a device waits for another process that writes, in seconds.
_PATIENCE = 60.0


class MemoryJournal:
    """In memory, as long as the client lives."""

    def __init__(self) -> None:
        self._reports: dict[tuple[str, int], bytes] = {}

    def read(self, task: str, occasion: int) -> bytes | None:
        """The report of an occasion, or None."""
        return self._reports.get((task, occasion))

    def record(self, task: str, occasion: int, report: bytes) -> bytes:
        """Write down a report unless there is one already, and return the one that is there."""
        return self._reports.setdefault((task, occasion), report)


class FileJournal:
    """In a file, for all tasks and all processes of the device.

    The file is a SQLite database, so that a report is written whole or not at all, and so that of
    two processes that draw at the same time only one counts.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(os.path.realpath(path))

    def read(self, task: str, occasion: int) -> bytes | None:
        """The report of an occasion, or None."""
        if not self.path.exists():
            return None
        try:
            with self._connection() as file:
                return self._read(file, task, occasion)
        except sqlite3.Error:
            self._raise_damaged()

    def record(self, task: str, occasion: int, report: bytes) -> bytes:
        """Write down a report unless there is one already, and return the one that is there.

        It is on the disk when this returns; if this raises, nothing may be sent.
        """
        try:
            if not self.path.exists():
                self._create()
            with self._connection() as file, file:
                file.execute(
                    "INSERT OR IGNORE INTO report VALUES (?, ?, ?)", (task, occasion, report)
                )
            with self._connection() as file:
                recorded = self._read(file, task, occasion)
        except sqlite3.OperationalError as problem:
            raise InvalidArgument(
                f"The ledger {self.path} cannot be written ({problem}), so no report was made. "
                "Check that its directory is writable and that the disk has room."
            ) from None
        except sqlite3.Error:
            self._raise_damaged()
        except OSError as problem:
            raise InvalidArgument(
                f"The ledger {self.path} cannot be created ({problem.strerror}), so no report was "
                "made. Choose a directory that the device can write to."
            ) from None
        if recorded is None:
            self._raise_damaged()
        return recorded

    def _connection(self) -> closing[sqlite3.Connection]:
        # An empty file is what is left of a damaged one: it has no table, and none is made here.
        file = sqlite3.connect(f"{self.path.as_uri()}?mode=rw", uri=True, timeout=_PATIENCE)
        file.execute("PRAGMA synchronous = FULL")
        return closing(file)

    def _read(self, file: sqlite3.Connection, task: str, occasion: int) -> bytes | None:
        found = file.execute(
            "SELECT report FROM report WHERE task = ? AND occasion = ?", (task, occasion)
        ).fetchone()
        if found is None:
            return None
        if not isinstance(found[0], bytes) or len(found[0]) != REPORT_BYTES:
            self._raise_damaged()
        return found[0]

    def _create(self) -> None:
        """A new file with its table, which appears whole or not at all."""
        handle, made = tempfile.mkstemp(dir=self.path.parent, prefix=f".{self.path.name}.")
        os.close(handle)
        try:
            with closing(sqlite3.connect(made)) as file, file:
                file.execute(_TABLE)
            with contextlib.suppress(FileExistsError):  # another process was faster
                self._place(made)
            sync_directory(str(self.path))
        finally:
            os.unlink(made)

    def _place(self, made: str) -> None:
        try:
            os.link(made, self.path)
        except FileExistsError:
            raise
        except OSError:  # a file system without links: what is cut off here is damage later
            with open(self.path, "xb") as file:
                file.write(Path(made).read_bytes())
                file.flush()
                os.fsync(file.fileno())

    def _raise_damaged(self) -> NoReturn:
        raise InvalidArgument(
            f"The ledger {self.path} cannot be read. It may have been damaged; without it "
            "the device cannot know what it sent. Do not report again for this person."
        ) from None
