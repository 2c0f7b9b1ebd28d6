"""Work on pieces of dense rows, in threads."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any

import numpy as np


def in_threads(
    make: Callable[[], np.ndarray],
    work: Callable[[slice, np.ndarray], Any],
    pieces: list[slice],
    threads: int,
) -> Any:
    """`work` on every piece, and the sum of what it finds; each thread makes one buffer."""

    def some(mine: list[slice]) -> Any:
        buffer, total = make(), None
        for piece in mine:
            found = work(piece, buffer)
            if total is None:
                total = found
            elif found is not None:
                total += found
        return total

    threads = min(threads, len(pieces))
    if threads <= 1:
        return some(pieces)
    ends = [len(pieces) * i // threads for i in range(threads + 1)]
    with ThreadPoolExecutor(threads) as pool:
        parts = [pool.submit(some, pieces[a:b]) for a, b in pairwise(ends)]
        found = [part.result() for part in parts]
    return None if found[0] is None else sum(found[1:], found[0])
