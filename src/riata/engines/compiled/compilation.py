"""What is kept of compiled code on disk, and who is told when it is compiled."""

from __future__ import annotations

import hashlib
import logging
from functools import cache
from pathlib import Path

from riata.engines.compiled import selection
from riata.mechanisms import envelope

#: All modules of compiled code.
KERNELS = (*sorted(Path(__file__).parent.glob("*.py")), Path(envelope.__file__))


@cache
def announce_compilation() -> None:
    """Say that the first fit waits for the compiler, if nothing compiled is kept from before."""
    folder = selection.advance.stats.cache_path
    if folder is None or not _is_kept(Path(folder)):
        logging.getLogger("riata").warning(
            "Compiling for large sparse data: this takes about half a minute, once."
        )


def _is_kept(folder: Path) -> bool:
    """Whether compiled kernels are kept; those of other sources, that numba may trip on, go."""
    digest = hashlib.sha256(b"".join(path.read_bytes() for path in KERNELS)).hexdigest()
    try:
        stamp = folder / "riata-kernels"
        if not stamp.exists() or stamp.read_text("ascii") != digest:
            for path in KERNELS:
                for old in folder.glob(f"{path.stem}.*.nb[ic]"):
                    old.unlink()
            folder.mkdir(parents=True, exist_ok=True)
            stamp.write_text(digest, encoding="ascii")
    except OSError:  # a folder that cannot be written to: numba says so itself
        pass
    return any(folder.glob("selection.advance-*.nbi"))
