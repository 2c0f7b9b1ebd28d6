"""Archives of arrays: zip files without compression, so that none unpacks to more than its size."""

from __future__ import annotations

import math
import os
import re
import struct
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, Any, BinaryIO

import numpy as np

from riata.files.limit import ReadLimit

#: Booleans, integers, floats, bytes and text of a fixed width: nothing that could hold an object.
DTYPE = re.compile(r"[<>|][biufSU][1-9][0-9]{0,8}")
#: The head of an array as riata writes it, in version 1.0 of NumPy's format.
_HEAD = re.compile(
    rb"\{'descr': '([<>|][biufSU][1-9][0-9]{0,8})', 'fortran_order': False, "
    rb"'shape': \(((?:[0-9]{1,18},(?: [0-9]{1,18},?){0,31})?)\), \} *\n"
)
_LONGEST_HEAD = 4096
#: The last record of an archive, and the two before it if the archive is larger than 4 GB.
_END, _END_64, _LOCATOR_64 = b"PK\x05\x06", b"PK\x06\x06", b"PK\x06\x07"
_END_BYTES, _END_64_BYTES, _LOCATOR_64_BYTES = 22, 56, 20
#: Bytes in the list of members for each of them, and what Python makes of each such byte.
_ENTRY, _ENTRY_GROWTH = 512, 32
_AT_ONCE = 2**20


class Archive:
    """The members of an archive. Each is read once, when it is asked for.

    By itself `zipfile` would find an archive anywhere in a file, list any number of members, and
    unpack them to any size. The file should be of some `kind`, such as "a model file", and no such
    file has more than `most_members`.
    """

    def __init__(self, stream: BinaryIO, limit: ReadLimit, kind: str, most_members: int) -> None:
        self._limit = limit
        self._damaged = f"It is not {kind}, or it is cut off or damaged. Copy it again."
        size = stream.seek(0, os.SEEK_END)
        listed = _list_bytes(stream, size)
        limit.require(listed <= size, self._damaged)
        limit.require(listed <= _ENTRY * most_members, "Its members are more than it can have.")
        limit.take(_ENTRY_GROWTH * int(listed), "The list of its members")
        with self._damage():
            self._archive = zipfile.ZipFile(stream)
        infos = self._archive.infolist()
        limit.require(len(infos) <= most_members, "Its members are more than it can have.")
        self._members = {info.filename: info for info in infos}
        self._check(infos, size)

    def _check(self, infos: list[zipfile.ZipInfo], size: int) -> None:
        require = self._limit.require
        require(len(self._members) == len(infos), "Two of its members have the same name.")
        for info in infos:
            stored = info.compress_type == zipfile.ZIP_STORED
            stored = stored and info.file_size == info.compress_size
            name = info.filename[:80]
            require(stored, f"Its member {name!r} is compressed, and riata never does that.")
        require(
            any(info.header_offset == 0 for info in infos), self._damaged
        )  # nothing comes before
        require(
            sum(info.file_size for info in infos) <= size, self._damaged
        )  # nothing is used twice

    def __contains__(self, name: str) -> bool:
        return name in self._members

    def read(self, name: str) -> bytes:
        """The bytes of a member."""
        with self._opened(name) as (stream, size):
            self._limit.take(size, f"Its member {name}")
            return stream.read()

    def array(self, name: str) -> np.ndarray:
        """The array of the member `name`.npy: of numbers, booleans or text, in C order."""
        require = self._limit.require
        refusal = f"Its member {name}.npy is not an array as riata writes it."
        with self._opened(f"{name}.npy") as (stream, size):
            magic, n_head = stream.read(8), stream.read(2)
            require(magic == b"\x93NUMPY\x01\x00" and len(n_head) == 2, refusal)
            (length,) = struct.unpack("<H", n_head)
            require(length <= _LONGEST_HEAD, refusal)
            head = _HEAD.fullmatch(stream.read(length))
            require(head, refusal)
            dtype, shape = _described(head)
            n_bytes = math.prod(shape) * dtype.itemsize
            require(size == 10 + length + n_bytes, refusal)
            self._limit.take(n_bytes, f"Its array {name}")
            raw = np.empty(n_bytes, dtype=np.uint8)
            _fill(raw.data, stream)
        return raw.view(dtype).reshape(shape)

    def end(self) -> None:
        """Refuse the file if it has members that nobody asked for."""
        unused = [name[:80] for name in sorted(self._members)[:5]]
        self._limit.require(not unused, f"It has members that no array needs: {unused}.")

    @contextmanager
    def _opened(self, name: str) -> Iterator[tuple[IO[bytes], int]]:
        self._limit.require(name in self._members, f"Its member {name} is missing.")
        info = self._members.pop(name)
        with self._damage(), self._archive.open(info) as stream:
            yield stream, info.file_size

    @contextmanager
    def _damage(self) -> Iterator[None]:
        try:
            yield
        except self._limit.error:
            raise
        except (zipfile.BadZipFile, EOFError, OSError, RuntimeError, TypeError, ValueError) as e:
            raise self._limit.error(self._damaged) from e


def _list_bytes(stream: BinaryIO, size: int) -> float:
    """The size of the list of members by the end of the archive; infinite if that is damaged."""
    stream.seek(0)
    begins = stream.read(4) == b"PK\x03\x04"
    ends = _END_64_BYTES + _LOCATOR_64_BYTES + _END_BYTES
    stream.seek(max(0, size - ends))
    tail = stream.read(ends)
    before, end = tail[:-_END_BYTES], tail[-_END_BYTES:]
    if not (begins and len(end) == _END_BYTES and end.startswith(_END)):
        return math.inf
    if not before[-_LOCATOR_64_BYTES:].startswith(_LOCATOR_64):
        return int(struct.unpack_from("<L", end, 12)[0])
    return int(struct.unpack_from("<Q", before, 40)[0]) if before.startswith(_END_64) else math.inf


def _described(head: Any) -> tuple[np.dtype[Any], tuple[int, ...]]:
    code, sizes = head.groups()
    shape = tuple(int(n) for n in sizes.decode().replace(",", " ").split())
    return np.dtype(code.decode()), shape


def _fill(view: memoryview, stream: IO[bytes]) -> None:
    """Read all of a member into memory that is there already, and check its sum at the end."""
    done = 0
    while part := stream.read(_AT_ONCE):
        view[done : done + len(part)] = part
        done += len(part)
    if done != len(view):
        raise EOFError("the member is cut off")
