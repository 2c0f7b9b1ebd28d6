"""A set of 64-bit words on a local disk that does not tell in which order they came.

A file of slots, written in full when it is made and then changed in place:

    8 bytes   the word
    8 bytes   a mix of its bits, so that damage shows
    or 16 zeros

The first bits of a word name its slot; where that is taken, the next free one is used. Which slots
are taken follows from the words alone, and so does what stands in them, but for words whose slots
touch. A slot lies in one sector of the disk, which is written whole or not at all.
"""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

from riata.collect.known import Known
from riata.errors import CollectError
from riata.privacy.chain import sync_directory

_SLOT = np.dtype([("word", ">u8"), ("mix", ">u8")])
#: A new file has this many slots, and at most every second one is taken.
_FEWEST = 1 << 12


class Slots:
    """Words in one file, made if it is not there.

    Parameters
    ----------
    path : path
        In a directory that no other process writes to.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self.known = Known()
        self._taken = np.zeros(_FEWEST, dtype=bool)
        if path.exists():
            self._read()
        else:
            self._make(_FEWEST)
        self._file = os.open(path, os.O_WRONLY)

    def _read(self) -> None:
        slots = np.frombuffer(_whole(self._path), dtype=_SLOT)
        words = slots["word"].astype(np.uint64)
        self._taken = slots["mix"] != 0
        if (slots["mix"] != np.where(self._taken, _mixed(words), words)).any():
            raise _damaged(self._path)
        self.known.add(self.known.new(words[self._taken]))

    def _make(self, size: int) -> None:
        """A file of so many slots with all words, in the place of the one before."""
        words, taken = self.known.everything(), np.zeros(size, dtype=bool)
        slots = np.zeros(size, dtype=_SLOT)
        places = [_free(taken, word) for word in words.tolist()]
        slots["word"][places], slots["mix"][places] = words, _mixed(words)
        beside = self._path.with_suffix(".new")
        try:
            with open(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
                file.write(slots.tobytes())
                file.flush()
                os.fsync(file.fileno())
        except OSError:
            beside.unlink(missing_ok=True)
            raise
        os.replace(beside, self._path)
        sync_directory(str(self._path))
        self._taken = taken

    def add(self, words: np.ndarray) -> None:
        """Add those of the words that are new. They are on the disk when this returns.

        Raises
        ------
        OSError
            Then some of them may be in the file, and none is in the set.
        """
        new = self.known.new(words)
        if not len(new):
            return
        size = len(self._taken)
        while 2 * (len(self.known) + len(new)) > size:
            size *= 2
        if size > len(self._taken):
            self._make(size)
            os.close(self._file)
            self._file = os.open(self._path, os.O_WRONLY)
        slots = np.zeros(len(new), dtype=_SLOT)
        slots["word"], slots["mix"] = new, _mixed(new)
        taken = self._taken.copy()
        for word, slot in zip(new.tolist(), slots, strict=True):
            os.pwrite(self._file, slot.tobytes(), _SLOT.itemsize * _free(taken, word))
        os.fsync(self._file)
        self._taken = taken
        self.known.add(new)

    def close(self) -> None:
        os.close(self._file)


def _free(taken: np.ndarray, word: int) -> int:
    """Take the slot of a word."""
    size = len(taken)
    place = word * size >> 64
    while taken[place]:
        place = (place + 1) % size
    taken[place] = True
    return place


def _mixed(words: np.ndarray) -> np.ndarray:
    """Bits that change with every bit of a word, and are never all zero."""
    mixed = (words ^ (words >> np.uint64(31))) + np.uint64(0x5851F42D4C957F2D)
    return (mixed * np.uint64(0x9E3779B97F4A7C15)) | np.uint64(1)


def _whole(path: Path) -> bytes:
    data = path.read_bytes()
    slots = len(data) // _SLOT.itemsize
    if len(data) % _SLOT.itemsize or slots < _FEWEST or slots & (slots - 1):
        raise _damaged(path)
    return data


def _damaged(path: Path) -> CollectError:
    return CollectError(
        f"{path} is damaged, as no crash does it. Restore it from a copy; without it, tokens could "
        "be used twice."
    )
