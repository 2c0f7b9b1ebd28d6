"""The channel that a task file states for an arm, or the best that its epsilon allows."""

from __future__ import annotations

import re

from riata.errors import InvalidArgument, TaskError
from riata.local.channel import Channel, channel
from riata.local.fields import Fields
from riata.local.limits import LARGEST_THRESHOLD, best_threshold, broken_limit, exp_minus


def read_channel(
    arm: Fields, degree: int, size: int, epsilon: float, seeds: int, inputs: int
) -> Channel:
    """Read the fields of an arm that make its channel, and check what a report would cost.

    Parameters
    ----------
    arm : Fields
        What is left out is chosen for the strongest signal.
    degree, size : int
        Of the channel. The file may only confirm them.
    epsilon : float
        What a report may cost.
    seeds, inputs : int
        As in `Channel.margin`.
    """
    arm.whole("degree", default=degree, least=degree, most=degree)
    arm.whole("size", default=size, least=size, most=size)
    best = None
    if not ("threshold" in arm and "coin" in arm):
        try:
            best = channel(degree, size, epsilon, seeds, inputs)
        except InvalidArgument as problem:
            raise _no_margin(arm, str(problem)) from None
    threshold = arm.number(
        "threshold", default=best and best.threshold, least=0.0, most=LARGEST_THRESHOLD
    )
    coin = _coin(arm, best)
    arm.end()
    broken = broken_limit(degree, size, threshold, coin, epsilon, seeds, inputs)
    if broken == "margin":
        raise _no_margin(arm, "the proof needs too large a part of it for the generator.")
    if broken == "threshold":
        usual = best_threshold(degree, exp_minus(epsilon))
        why = f"devices would try for long or say little; the best is about {usual:.6f}"
        raise arm.wrong("threshold", threshold, why)
    if broken:
        costs = f"a report would cost more than {epsilon}"
        why = costs if broken == "cost" else "it says little; leave it out for the best"
        raise arm.wrong("coin", f"{coin:016x}", why)
    return Channel(degree, size, threshold, coin)


def _no_margin(arm: Fields, why: str) -> TaskError:
    return TaskError(f"The field epsilon does not fit {arm.path('share')}: {why}")


def _coin(arm: Fields, best: Channel | None) -> int:
    text = arm.take("coin", "" if best is None else f"{best.coin:016x}")
    if not isinstance(text, str) or not re.fullmatch("[0-9a-f]{16}", text) or int(text, 16) == 0:
        raise arm.wrong("coin", text, "it must be 16 hexadecimal digits from 0 to f, not all 0")
    return int(text, 16)
