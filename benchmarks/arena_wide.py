"""The arena's texts and wide tables: those of MANIFEST that have a task, with a public encoding."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np

import classes
import real_data
import real_text
from riata import Bounds

import menu_data
from arena_data import Table
from menu_data import lines

#: Larger sets are sampled, so that peers with dozens of settings take minutes.
MOST_ROWS = 20_000

TEXT = Bounds(x=1.0, norm="l2", nonnegative=True)


def _sports() -> Table:
    """Which of 7,600 news are about sports (25%)."""
    x, y, bounds = classes.agnews()
    return Table(x, np.where(y == 1, 1.0, -1.0), bounds, n_classes=2)


def _all(found: classes.Table) -> Table:
    x, y, bounds = found
    return Table(x, y.astype(float), bounds, n_classes=int(y.max()) + 1)


def _two(found: real_text.Rows) -> Table:
    return Table(found[0], np.where(found[1], 1.0, -1.0), TEXT, n_classes=2)


def _spam() -> Table:
    """Which of 5,572 messages are spam (13%)."""
    rows = lines("sms_spam.jsonl.gz")
    x = real_text.log_counts([r["text"] for r in rows], 14, stop_words=False)
    labels = np.array([str(r["label"]) in ("spam", "1") for r in rows])
    return _two((x, labels))


def _of(data: real_data.RealData) -> Table:
    return Table(data.x, data.y, data.bounds, n_classes=2 if data.classifies else 0)


def _stays(readmitted: bool) -> Table:
    """The first stays of patients: how many days, or whether they came back (any time)."""
    x, y, length = menu_data.stays()
    if not readmitted:
        return Table(x, y, Bounds(length, 1.0, norm="l2"))
    return Table(x, menu_data.readmitted(), Bounds(length, norm="l2"), n_classes=2)


def _sampled(load: Callable[[], Table]) -> Callable[[], Table]:
    return cache(lambda: load().sample(MOST_ROWS))


WIDE: dict[str, Callable[[], Table]] = {
    name: _sampled(load)
    for name, load in {
        "adult": lambda: _of(real_data.a9a()),
        "flights": lambda: _of(real_data.flights()),
        "stays, days": lambda: _stays(readmitted=False),
        "stays, readmitted": lambda: _stays(readmitted=True),
        "headlines": lambda: _two(real_text.clickbait()),
        "posts, comp.*": lambda: _two(real_text.newsgroups(14, stop_words=False)),
        "spam": _spam,
        "news, sports": _sports,
        "news, four classes": lambda: _all(classes.agnews()),
        "posts, ten classes": lambda: _all(classes.newsgroups()),
        "queries, 77 classes": lambda: _all(classes.banking()),
        "cuts of diamonds": lambda: _all(classes.cuts()),
    }.items()
}
