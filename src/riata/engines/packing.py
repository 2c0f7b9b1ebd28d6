"""Long sums in fewer bytes, exactly: what workers send."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

#: Numbers are packed so many at a time, each lot in its own way: few enough to stay in the cache,
#: and to be found by 16 bits.
LOT = 2**16

#: How a number of so many bytes is written: the low part first. The last part has the sign. What
#: needs two parts takes longer, so there are only two of these.
PARTS: dict[int, tuple[str, ...]] = {
    0: (), 2: ("<i2",), 4: ("<i4",), 5: ("<u4", "i1"), 6: ("<u4", "<i2"), 8: ("<i8",),
}  # fmt: skip

#: A number that is too large for the others' bytes is listed with its place, in so many bytes.
LISTED = 2 + 8

#: To list a number takes some 10 ns too, in which a network of 10 Gbit/s sends as many bytes again:
#: it is done where it saves so many.
_WORTH = 24

#: The number of bytes is chosen by looking at one number in so many.
_LOOK = 256

_WIDTHS = np.array(list(PARTS))
_FIRST_TOO_LARGE = np.array([1, *(2 ** (8 * width - 1) for width in _WIDTHS[1:-1].tolist())])


@dataclass(frozen=True)
class Packed:
    """Whole numbers of 64 bits in as few bytes as most of them need.

    Attributes
    ----------
    shape : tuple of int
    lots : list of tuple
        For each lot: the bytes of a number, how often all numbers were halved, and how many are
        listed.
    data : ndarray of uint8
    """

    shape: tuple[int, ...]
    lots: list[tuple[int, int, int]]
    data: np.ndarray

    def added_to(self, total: np.ndarray | None, limit: Any = None) -> np.ndarray:
        """The sum, in the memory of `total` if there is one.

        Parameters
        ----------
        total : ndarray, optional
            Of the same shape.
        limit : number or ndarray, optional
            How large the packed numbers may be. If one is larger, or the bytes are not those of
            packed numbers, there is a ValueError, and `total` is good for nothing.
        """
        self._check()
        if total is None:
            total = np.zeros(self.shape, dtype=np.int64)
        total = np.ascontiguousarray(total)
        flat, read = total.reshape(-1), _Cursor(self.data)
        for lot, layout in enumerate(self.lots):
            into = flat[lot * LOT : (lot + 1) * LOT]
            places, numbers = _unpack(len(into), layout, read)
            most = limit[lot * LOT : (lot + 1) * LOT][places] if np.ndim(limit) else limit
            if most is not None and exceeds(numbers, most):
                raise ValueError("a sum that is larger than its rows can make it")
            into[places] += numbers
        return total

    def _check(self) -> None:
        """Raise unless the bytes are as many as the lots say, before any of them is read."""
        size, needed = math.prod(self.shape), 0
        good = len(self.lots) == -(-size // LOT) and self.data.ndim == 1
        for lot, (width, halvings, listed) in enumerate(self.lots):
            length = min(LOT, size - lot * LOT)
            if width not in PARTS or not 0 <= halvings < 64 or not 0 <= listed <= length:
                good = False
                break
            parts = [length * np.dtype(kind).itemsize for kind in PARTS[width]]
            parts += [2 * listed, 8 * listed]
            needed += sum(map(_rounded, parts))
        if not good or needed != len(self.data):
            raise ValueError("a packed sum whose bytes do not fit together")


def exceeds(numbers: np.ndarray, limit: Any) -> bool:
    """Whether a number is larger than a limit, or than its own, in either direction."""
    if not numbers.size:
        return False
    if np.ndim(limit) == 0:  # without a copy of them
        return bool(numbers.max() > limit or numbers.min() < -limit)
    return bool(np.any(numbers > limit) or np.any(numbers < -limit))


def _unpack(
    length: int, layout: tuple[int, int, int], read: _Cursor
) -> tuple[np.ndarray | slice, np.ndarray]:
    """The numbers of one lot that are not 0, and where they are; or all of them."""
    width, halvings, listed = layout
    found = np.empty(0, dtype=np.int64)
    for number, kind in enumerate(PARTS[width]):
        part = read.array(kind, length)
        if number:
            found += np.left_shift(part, 32, dtype=np.int64)
        else:
            found = part.astype(np.int64)
    everywhere: np.ndarray | slice = slice(length)
    if listed or not width:
        places, large = read.array("<u2", listed), read.array("<i8", listed)
        if np.any(places[1:] <= places[:-1]) or np.any(places >= length):
            raise ValueError("a packed sum whose bytes do not fit together")
        if width:
            found[places] += large
        else:
            everywhere, found = places, large
    return everywhere, found << halvings if halvings else found


def packed(total: np.ndarray) -> Packed:
    """The same numbers, packed."""
    flat = np.ascontiguousarray(total, dtype=np.int64).reshape(-1)
    written = _Cursor(np.empty(flat.nbytes, dtype=np.uint8))
    starts = range(0, len(flat), LOT)
    lots = [_pack(flat[start : start + LOT], written) for start in starts]
    return Packed(total.shape, lots, written.data[: written.at])


class _Cursor:
    """A place in bytes. Arrays begin at multiples of 8, or they would be read slowly."""

    def __init__(self, data: np.ndarray) -> None:
        self.data, self.at = data, 0

    def array(self, kind: str, length: int) -> Any:
        """The next array, which can be written to if the bytes can."""
        begin, size = self.at, length * np.dtype(kind).itemsize
        self.at += _rounded(size)
        return self.data[begin : begin + size].view(kind)


def _rounded(size: int) -> int:
    return size + -size % 8


def _pack(x: np.ndarray, out: _Cursor) -> tuple[int, int, int]:
    """Write one lot."""
    halvings = _halvings(x)
    if halvings:
        x = x >> halvings
    width, begin = _width(x), out.at
    done, top, part = 0, x, None
    for kind in PARTS[width]:
        top = x >> done if done else x
        part = out.array(kind, len(x))
        np.copyto(part, top, casting="unsafe")
        done += 8 * part.itemsize
    if width == 8:
        return width, halvings, 0
    places = np.flatnonzero(top != (0 if part is None else part))
    size = _rounded(2 * len(places)) + 8 * len(places)
    if out.at + size > begin + x.nbytes:  # the look was wrong
        out.at = begin
        out.array("<i8", len(x))[:] = x
        return 8, halvings, 0
    if len(places):
        out.array("<u2", len(places))[:] = places
        large = x[places]
        spare = 64 - 8 * width
        out.array("<i8", len(places))[:] = large - (large << spare >> spare) if width else large
    return width, halvings, len(places)


def _halvings(x: np.ndarray) -> int:
    """How often all numbers can be halved: yes-no columns have sums of multiples of 2^16."""
    bits = int(np.bitwise_or.reduce(x[::_LOOK]))
    if bits & 1:
        return 0
    bits = int(np.bitwise_or.reduce(x))
    return max((bits & -bits).bit_length() - 1, 0)


def _width(x: np.ndarray) -> int:
    """The bytes of a number with which the lot is likely to be smallest."""
    few = x[::_LOOK]
    sizes = np.sort(few ^ (few >> 63))
    too_large = np.append(len(few) - np.searchsorted(sizes, _FIRST_TOO_LARGE), 0)
    return int(_WIDTHS[np.argmin(_WIDTHS + too_large * (_WORTH / len(few)))])
