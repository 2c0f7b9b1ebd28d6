"""Counts in the text format of Prometheus."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from riata.collect.refusals import (
    CAPPED,
    CONNECTION_REASONS,
    FULL,
    MEMORY,
    REASONS,
    STORE,
    TOO_LARGE,
    TOO_MANY,
)

_REFUSALS = (
    *REASONS, TOO_MANY.reason, TOO_LARGE.reason, CAPPED.reason, *CONNECTION_REASONS,
)  # fmt: skip
_ERRORS = (FULL.reason, STORE.reason, MEMORY.reason)


def text(
    reports: int, refusals: Counter[str], errors: Counter[str], disk: Path | None = None
) -> str:
    """All counts. Each reason stands there from the start, as alerts need it."""
    lines = _metric("riata_reports", "gauge", "Reports that are durable, each once.", reports)
    lines += _metric(
        "riata_refused_total", "counter", "What was refused since the start.", refusals.total()
    )
    lines += _metric(
        "riata_refusals_total",
        "counter",
        "What was refused since the start, by reason.",
        {reason: refusals[reason] for reason in _REFUSALS},
    )
    lines += _metric(
        "riata_errors_total",
        "counter",
        "Requests whose reports the collector could not keep since the start, by reason.",
        {reason: errors[reason] for reason in _ERRORS},
    )
    room = free_bytes(disk)
    if room is not None:
        lines += _metric("riata_disk_free_bytes", "gauge", "Room on the disk of the store.", room)
    return "\n".join(lines) + "\n"


def free_bytes(disk: Path | None) -> int | None:
    """The room on a disk, if there is one that can be asked."""
    try:
        return None if disk is None else shutil.disk_usage(disk).free
    except OSError:
        return None


def _metric(name: str, kind: str, sentence: str, value: int | Mapping[str, int]) -> list[str]:
    head = [f"# HELP {name} {sentence}", f"# TYPE {name} {kind}"]
    if isinstance(value, int):
        return [*head, f"{name} {value}"]
    return [*head, *(f'{name}{{reason="{reason}"}} {n}' for reason, n in value.items())]
