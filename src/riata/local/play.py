"""Devices: drawing seeds until one is accepted. The same code for one person and for millions."""

from __future__ import annotations

import numpy as np

from riata.local.arms import Arm
from riata.local.generator import Generator
from riata.local.task import Task
from riata.mechanisms.noise import Noise

#: Normal numbers that are drawn at once.
_AT_ONCE = 1 << 21


def choose_arms(task: Task, words: np.ndarray) -> np.ndarray:
    """The number of the arm that each random word asks. It depends on nothing else."""
    starts = np.array([arm.first for arm in task.arms], dtype=np.uint64)
    return np.searchsorted(starts, words, side="right") - 1


def play(task: Task, rows: np.ndarray, targets: np.ndarray | None, noise: Noise) -> np.ndarray:
    """One report from each row.

    Parameters
    ----------
    rows : ndarray of shape (n, columns)
        Encoded rows, in the unit ball.
    targets : ndarray of shape (n,) or None
        Encoded targets, in [-1, 1].

    Returns
    -------
    seeds : ndarray of uint64, shape (n,)
    """
    asked = choose_arms(task, noise.words(len(rows)))
    reports = np.empty(len(rows), dtype=np.uint64)
    for number, arm in enumerate(task.arms):
        people = np.flatnonzero(asked == number)
        step = max(1, _AT_ONCE // max(arm.channel.size, task.encoding.columns))
        for start in range(0, len(people), step):
            part = people[start : start + step]
            carried = arm.carried(
                task.vectors(rows[part]), None if targets is None else targets[part]
            )
            reports[part] = accepted_seeds(arm, task.generator, carried, noise)
    return reports


def accepted_seeds(arm: Arm, generator: Generator, carried: np.ndarray, noise: Noise) -> np.ndarray:
    """A seed for each row of `carried`: all rows try one seed, then those that did not accept."""
    seeds = np.empty(len(carried), dtype=np.uint64)
    left = np.arange(len(carried))
    # Few people try several seeds at once, in their own order; the first that is accepted counts.
    while len(left):
        room = (_AT_ONCE >> 5) // arm.channel.size, _AT_ONCE // carried.shape[1]
        tries = max(1, min(64, min(room) // len(left)))
        words = noise.words(2 * len(left) * tries)
        candidates = arm.seeds_from(words[::2])
        held = np.repeat(carried[left], tries, axis=0)
        good = arm.accepted(generator, held, candidates, words[1::2]).reshape(-1, tries)
        done = good.any(axis=1)
        first = good.argmax(axis=1)
        seeds[left[done]] = candidates.reshape(-1, tries)[done, first[done]]
        left = left[~done]
    return seeds
