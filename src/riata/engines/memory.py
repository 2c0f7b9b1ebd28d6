"""How much memory rows may take."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from riata.errors import InvalidArgument

#: The variable that sets it, such as "4GB".
VARIABLE = "RIATA_MEMORY"

_UNITS = {"": 1, "k": 2**10, "m": 2**20, "g": 2**30, "t": 2**40}

#: The part of what is free that rows may take if nobody says otherwise.
_PART = 0.5

#: What is free on a machine that does not say, such as one with Windows.
_UNKNOWN = 4 * 2**30


def memory_for_rows() -> int:
    """In bytes: what `RIATA_MEMORY` says, or half of what is free."""
    given = os.environ.get(VARIABLE)
    return int(_PART * _free()) if given is None else bytes_of(given)


def check_memory() -> None:
    """Raise if `RIATA_MEMORY` is no amount, before anything is charged."""
    if VARIABLE in os.environ:
        bytes_of(os.environ[VARIABLE])


def bytes_of(text: str) -> int:
    """The number of bytes that a text such as "8GB", "500 MB" or "1e9" stands for."""
    plain = text.strip().lower().removesuffix("b").removesuffix("i").strip()
    unit = plain[-1:] if plain[-1:] in _UNITS else ""
    try:
        size = int(float(plain.removesuffix(unit)) * _UNITS[unit])
    except (ValueError, OverflowError):
        size = 0
    if size <= 0:
        raise InvalidArgument(
            f"{VARIABLE}={text!r} is no amount of memory. Write a number and a unit, such as 4GB."
        )
    return size


def _free() -> int:
    """What the machine has free, less if this process may have less."""
    found = [_machine(), *_limit_of_process()]
    group = Path("/sys/fs/cgroup")
    for names in (
        ("memory.max", "memory.current"),
        ("memory/memory.limit_in_bytes", "memory/memory.usage_in_bytes"),
    ):
        with contextlib.suppress(OSError, ValueError):
            most, used = (int((group / name).read_text("ascii")) for name in names)
            found.append(most - used)
    return max(0, min(found))


def _machine() -> int:
    """What is free as Linux says it, or else half of all memory."""
    meminfo = Path("/proc/meminfo")
    if meminfo.exists():
        lines = dict(line.split(":", 1) for line in meminfo.read_text("ascii").splitlines())
        return 1024 * int(lines["MemAvailable"].split()[0])
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2
    except (AttributeError, ValueError):
        return _UNKNOWN


def _limit_of_process() -> list[int]:
    """What is left below the limit of this process, if it has one."""
    try:
        import resource
    except ImportError:  # Windows
        return []
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    if limit == resource.RLIM_INFINITY:
        return []
    status = Path("/proc/self/statm")
    pages = int(status.read_text("ascii").split()[0]) if status.exists() else 0
    return [limit - pages * os.sysconf("SC_PAGE_SIZE")]
