"""The rows that two neighbours have in common: they decide where a fit goes."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from riata.audit.witness import Data
from riata.problem import Problem
from riata.public import public_normals
from riata.vectors import length


def backgrounds(problem: Problem, targets: np.ndarray, count: int) -> Iterator[tuple[str, Data]]:
    """Names, and `count` rows each, from idle ones to those that leave noise no choice.

    There are two extreme targets.
    """
    size = problem.n_features
    high, low = float(targets[0]), float(targets[1])
    turn = np.where(np.arange(count) % 2, -1.0, 1.0)[:, None]
    first, last, even = np.eye(1, size)[0], np.eye(1, size, size - 1)[0], np.arange(size) % 2 == 0
    # Some targets that no model explains keep slopes large.
    odd = np.where(np.arange(count) % 7 < 2, -1.0, 1.0)[:, None]
    signs = np.sign(public_normals((count, size), "riata audit backgrounds"))
    clear, mixed = np.where(turn > 0, high, low), np.where(turn * odd > 0, high, low)
    kinds = {
        "one column by class": np.where(turn > 0, first, last),
        "last column": turn * last,
        "one column": turn * first,
        "all columns": turn * np.ones(size),
        "columns by class": np.where((turn > 0) == even, 1.0, 0.0),
        "random": turn * signs * signs[:, :1],
    }
    yield (
        "one column, one side",
        (inside(problem, np.tile(first, (count, 1))), np.full(count, high)),
    )
    yield "blank", (np.zeros((count, size)), np.full(count, low))
    for name, directions in kinds.items():
        yield name, (inside(problem, directions), clear.ravel())
    for name, directions in kinds.items():
        yield f"{name}, some odd", (inside(problem, directions), mixed.ravel())


def inside(problem: Problem, directions: np.ndarray, *, whole: bool = True) -> np.ndarray:
    """Rows in these directions, as large as the bounds allow; or, not `whole`, no larger."""
    bounds = problem.bounds
    if bounds.max_length is None:
        corners = np.sign(directions) * bounds.per_column(problem.n_features)
        return np.asarray(bounds.clip_x(corners)) if bounds.shortens else corners
    lengths = np.array([length(row) or 1.0 for row in directions]) / bounds.max_length
    rows = directions / (lengths if whole else np.maximum(lengths, 1.0))[:, None]
    return np.asarray(bounds.clip_x(rows))
