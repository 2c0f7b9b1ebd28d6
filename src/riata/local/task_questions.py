"""The questions that a task file states, each with the best channel that its epsilon allows."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping

from riata.errors import InvalidArgument, TaskError
from riata.local.channel import Channel, channel
from riata.local.channel_limits import LARGEST_THRESHOLD, best_threshold, broken_limit, exp_minus
from riata.local.generator import SEED_BITS
from riata.local.kinds import TaskKind
from riata.local.questions import DEGREES, Question, report_size, reported_size
from riata.local.task_fields import TaskFields

#: How far from 1 the shares of the questions may sum.
_SHARES_OFF = 1e-9


def read_questions(
    fields: TaskFields, kind: TaskKind, epsilon: float, size: int
) -> tuple[Question, ...]:
    """Read the questions, and check that their shares sum to 1 and what a report would cost.

    Parameters
    ----------
    fields : TaskFields
        A share for each question, or a table with its share and its channel.
    kind : TaskKind
        Which questions there are: for regressions, those that the file names.
    epsilon : float
        What a report may cost.
    size : int
        Coordinates of the vectors that rows become.
    """
    split = kind.regression and "joint" not in fields
    tables, shares = {}, {}
    for name in ("gram", "cross") if split else kind.shares(0):
        raw = fields.take(name)
        stated = raw if isinstance(raw, Mapping) else {"share": raw}
        tables[name] = TaskFields(stated, fields.path(name))
        shares[name] = tables[name].number("share", above=0.0, least=0.0, most=1.0)
    fields.end()
    total, ranges = math.fsum(shares.values()), seed_ranges(shares)
    if abs(total - 1.0) > _SHARES_OFF or any(seeds < 1 for _, seeds in ranges.values()):
        raise TaskError(
            f"The field arms is wrong: its shares ({', '.join(shares)}) sum to {total:.12g}, "
            "not to 1. Correct the task file."
        )
    return tuple(
        Question(
            name,
            shares[name],
            first,
            seeds,
            _read_channel(tables[name], name, size, epsilon, seeds),
        )
        for name, (first, seeds) in ranges.items()
    )


def seed_ranges(shares: Mapping[str, float]) -> dict[str, tuple[int, int]]:
    """The first seed of each question and their number: the last one gets all that are left."""
    ranges: dict[str, tuple[int, int]] = {}
    first = 0
    for name, share in shares.items():
        seeds = math.floor(share * 2**SEED_BITS)
        if len(ranges) == len(shares) - 1:
            seeds = 2**SEED_BITS - first
        ranges[name] = (first, seeds)
        first += seeds
    return ranges


def _read_channel(
    fields: TaskFields, name: str, columns: int, epsilon: float, seeds: int
) -> Channel:
    """The channel of one question. The file may only confirm degree and size.

    Threshold and coin that are left out are chosen for the strongest signal; `seeds` are those of
    `Channel.margin`.
    """
    degree, size, inputs = DEGREES[name], report_size(name, columns), reported_size(name, columns)
    fields.whole("degree", default=degree, least=degree, most=degree)
    fields.whole("size", default=size, least=size, most=size)
    best = None
    if not ("threshold" in fields and "coin" in fields):
        try:
            best = channel(degree, size, epsilon, seeds, inputs)
        except InvalidArgument as problem:
            raise _no_margin(fields, str(problem)) from None
    threshold = fields.number(
        "threshold", default=best and best.threshold, least=0.0, most=LARGEST_THRESHOLD
    )
    coin = _read_coin(fields, best)
    fields.end()
    broken = broken_limit(degree, size, threshold, coin, epsilon, seeds, inputs)
    if broken == "margin":
        raise _no_margin(fields, "the proof needs too large a part of it for the generator.")
    if broken == "threshold":
        usual = best_threshold(degree, exp_minus(epsilon))
        why = f"devices would try for long or say little; the best is about {usual:.6f}"
        raise fields.wrong("threshold", threshold, why)
    if broken:
        costs = f"a report would cost more than {epsilon}"
        why = costs if broken == "cost" else "it says little; leave it out for the best"
        raise fields.wrong("coin", f"{coin:016x}", why)
    return Channel(degree, size, threshold, coin)


def _no_margin(fields: TaskFields, why: str) -> TaskError:
    return TaskError(f"The field epsilon does not fit {fields.path('share')}: {why}")


def _read_coin(fields: TaskFields, best: Channel | None) -> int:
    text = fields.take("coin", "" if best is None else f"{best.coin:016x}")
    if not isinstance(text, str) or not re.fullmatch("[0-9a-f]{16}", text) or int(text, 16) == 0:
        raise fields.wrong("coin", text, "it must be 16 hexadecimal digits from 0 to f, not all 0")
    return int(text, 16)
