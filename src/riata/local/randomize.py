"""The randomizer of devices: seeds are drawn until one is accepted, for one person or millions."""

from __future__ import annotations

import numpy as np

from riata.local.generator import Generator
from riata.local.questions import Question
from riata.local.task import Task
from riata.mechanisms.noise import Noise
from riata.numeric import row_slices

#: Normal numbers that are drawn at once.
_AT_ONCE = 1 << 21


def choose_questions(task: Task, words: np.ndarray) -> np.ndarray:
    """The number of the question that each random word asks. It depends on nothing else."""
    starts = np.array([question.first for question in task.questions], dtype=np.uint64)
    return np.searchsorted(starts, words, side="right") - 1


def randomize(task: Task, rows: np.ndarray, targets: np.ndarray | None, noise: Noise) -> np.ndarray:
    """One report from each row.

    Parameters
    ----------
    rows : ndarray of shape (n, columns)
        Encoded rows.
    targets : ndarray of shape (n,) or None
        Encoded targets, in [-1, 1].

    Returns
    -------
    seeds : ndarray of uint64, shape (n,)
    """
    asked = choose_questions(task, noise.words(len(rows)))
    reports = np.empty(len(rows), dtype=np.uint64)
    for number, question in enumerate(task.questions):
        people = np.flatnonzero(asked == number)
        width = max(question.channel.size, task.encoding.columns)
        for some in row_slices(len(people), width, _AT_ONCE):
            part = people[some]
            prepared = question.prepare(
                task.vectors(rows[part]), None if targets is None else targets[part]
            )
            reports[part] = draw_seeds(question, task.generator, prepared, noise)
    return reports


def draw_seeds(
    question: Question, generator: Generator, prepared: np.ndarray, noise: Noise
) -> np.ndarray:
    """A seed for each row of `prepared`: all rows try one seed, then those that did not accept."""
    seeds = np.empty(len(prepared), dtype=np.uint64)
    left = np.arange(len(prepared))
    # Few people try several seeds at once, in their own order; the first that is accepted counts.
    while len(left):
        room = (_AT_ONCE >> 5) // question.channel.size, _AT_ONCE // prepared.shape[1]
        tries = max(1, min(64, min(room) // len(left)))
        words = noise.words(2 * len(left) * tries)
        candidates = question.seeds_from(words[::2])
        held = np.repeat(prepared[left], tries, axis=0)
        good = question.accepts(generator, held, candidates, words[1::2]).reshape(-1, tries)
        done = good.any(axis=1)
        first = good.argmax(axis=1)
        seeds[left[done]] = candidates.reshape(-1, tries)[done, first[done]]
        left = left[~done]
    return seeds
