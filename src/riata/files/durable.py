"""Files that survive a crash: whole or not there, and with one writer at a time."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

PathLike = str | os.PathLike[str]

#: For `os.open`: not through a link that somebody put there. Windows has no such flag.
NO_FOLLOW: int = getattr(os, "O_NOFOLLOW", 0)
#: For `os.open` and `os.write`: Windows would write two bytes for each line feed.
BINARY: int = getattr(os, "O_BINARY", 0)


def create(path: PathLike, content: bytes) -> None:
    """Write a new file that its owner alone can read. Durable when this returns.

    Raises
    ------
    FileExistsError
        If there is one. It is not touched.
    OSError
        If it cannot be written. Then there is none.
    """
    write_new(path, content)
    try:
        sync_directory(path)
    except OSError:
        os.unlink(path)
        raise


def replace(path: PathLike, content: bytes) -> None:
    """Put a file in the place of another, whole or not at all. Durable when this returns.

    Until then the content is in a file whose name ends with ".new", so there must be no other
    writer: whoever calls this holds a lock.
    """
    new = f"{os.fspath(path)}.new"
    with contextlib.suppress(FileNotFoundError):  # left by a process that died
        os.unlink(new)
    write_new(new, content)
    os.replace(new, path)
    sync_directory(path)


@contextlib.contextmanager
def replacing(path: PathLike) -> Iterator[BinaryIO]:
    """A file that takes the place of another, or of none, at the end of the block.

    Whole or not at all, and with the permissions of any new file. Its name is not durable yet. Of
    several writers the last one counts.
    """
    path = Path(path)
    temporary = path.parent / f".riata-{os.urandom(6).hex()}.tmp"
    try:
        with temporary.open("xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink()


def write_new(path: PathLike, content: bytes) -> None:
    """The content of a new file, durable; its name is not yet."""
    handle = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | BINARY, 0o600)
    try:
        with open(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
    except OSError:
        os.unlink(path)
        raise


def sync_directory(path: PathLike) -> None:
    """Make the name of a file durable. Windows does so by itself, and opens no directories."""
    if os.name == "nt":
        return
    directory = os.open(os.path.dirname(os.path.abspath(path)), os.O_RDONLY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)


def lock(file: int) -> bool:
    """Whether this process has the lock of an open file now. The system releases it with the file.

    The lock is the file's and not the name's, and ends with the last process that has the file
    open, however that process ends.
    """
    from filelock import lock_descriptor  # slow to import

    return lock_descriptor(file, blocking=False)
