"""Neighbours that come as close as possible to the claimed privacy loss."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from riata.audit.witness import Data
from riata.engines import LocalEngine
from riata.fitting import plan
from riata.privacy.budget import ADD_REMOVE, REPLACE_LABEL
from riata.problem import Problem
from riata.public import public_normals
from riata.queries import Gradient, VertexUtilities
from riata.sets import PolytopeSet
from riata.vectors import Vector, length

#: How a row of bounded length is split between the support of theta and the other columns.
_SPLITS = (0.0, 0.05, 0.3, 1.0)


@dataclass(frozen=True, eq=False)
class Neighbours:
    """Two data sets that differ in their first row.

    Attributes
    ----------
    data, neighbour : tuple of (X, y)
        Ready to be fitted.
    ratio : float
        The change between them at the start of a fit, over the one that the noise is scaled to.
    """

    data: tuple[np.ndarray, np.ndarray]
    neighbour: tuple[np.ndarray, np.ndarray]
    ratio: float


def worst_pair(model: Any, n_rows: int, n_features: int, *, tilt: int = 1) -> Neighbours:
    """The neighbours that change the first release of a fit most.

    The first rows are the extreme pair; `tilt` rows that repeat the second of them make the
    outcomes that the first favours rare, which is where the privacy loss is largest; the rest are
    blank.

    Parameters
    ----------
    model : estimator
        Its loss, set, bounds and adjacency decide the rows.
    n_rows, n_features : int
    tilt : int, default=1
        More makes the loss larger and the outcome that shows it rarer.
    """
    problem = first_problem(model, n_rows, n_features)
    x, y = extreme_rows(problem, problem.set.start())
    one, other, ratio = _furthest(problem, x, y)
    rows = np.zeros((n_rows, n_features))
    targets = np.zeros(n_rows)
    second = slice(1, 1 + min(tilt, n_rows - 1))
    rows[0], targets[0] = x[one], y[one]
    if other is not None:
        rows[second], targets[second] = x[other], y[other]
    data = rows, labels_of(model, targets)
    if other is None:
        return Neighbours(data, (rows[1:], data[1][1:]), ratio)
    neighbour, their_targets = rows.copy(), targets.copy()
    neighbour[0], their_targets[0] = x[other], y[other]
    return Neighbours(data, (neighbour, labels_of(model, their_targets)), ratio)


#: What hostile rows are made of, beside ordinary numbers.
_HOSTILE = (0.0, 1.0, -1.0, 1e300, -1e300, np.inf, -np.inf, np.nan)


def random_pairs(
    model: Any, count: int, n_rows: int, n_features: int, *, label: str = ""
) -> Iterator[tuple[Data, Data]]:
    """`count` pairs of neighbours with hostile entries, the same for everybody with this `label`.

    They differ in the first row. A third of the entries are zeros, bounds, huge, infinite or
    missing; the others are normal, and mostly outside the bounds.
    """
    problem = first_problem(model, n_rows, n_features)
    limit = np.append(problem.bounds.per_column(n_features), problem.y_bound)
    codes = hasattr(model, "classes")
    for k in range(count):
        draws = public_normals((2, n_rows + 1, n_features + 1), f"riata audit {label} {k}")
        special = (np.abs(draws[1]) * 1e6).astype(np.int64) % (3 * len(_HOSTILE))
        values = 3 * draws[0]
        chosen = special < len(_HOSTILE)
        values[chosen] = np.array(_HOSTILE)[special[chosen]]
        with np.errstate(over="ignore"):
            x, y = values[:, :-1] * limit[:-1], values[:, -1] * limit[-1]
        if codes:
            y = labels_of(model, special[:, -1] % len(model.declared_classes()))
        rest = slice(1, -1) if problem.adjacency == ADD_REMOVE else slice(2, None)
        first = (np.vstack([x[:1], x[rest]]), np.concatenate([y[:1], y[rest]]))
        if problem.adjacency == ADD_REMOVE:
            yield first, (x[rest], y[rest])
        else:
            yield first, (first[0] if problem.adjacency == REPLACE_LABEL else x[1:], y[1:])


def exchangeable(problem: Problem, x: np.ndarray) -> np.ndarray:
    """Which of these rows may be in each other's place between neighbours, with any targets."""
    if problem.adjacency != REPLACE_LABEL:
        return np.ones((len(x), len(x)), dtype=bool)
    return np.array([(x == row).all(axis=1) for row in x])


def extreme_rows(problem: Problem, theta: Vector) -> tuple[np.ndarray, np.ndarray]:
    """Rows on the boundary of the bounds that make slopes and entries as large as they get.

    Each follows theta on its support, so that the margin is extreme, and one of several directions
    on the other columns.
    """
    size, bounds = problem.n_features, problem.bounds
    limit = bounds.per_column(size)
    follow, free = np.zeros(size), np.ones(size)
    follow[theta.support] = np.sign(theta.values) * limit[theta.support]
    free[theta.support] = 0.0
    alternating = np.where(np.arange(size) % 2, -1.0, 1.0)
    directions = [free * limit, free * alternating * limit, *_directions(problem, free, limit)]
    rows = []
    for direction, sign, turned in itertools.product(directions, (1.0, -1.0), (1.0, -1.0)):
        if bounds.max_length is None:
            rows.append(sign * follow + turned * direction)
            continue
        for split in _SPLITS:
            rows.append(sign * split * _unit(theta.dense()) + turned * _unit(direction))
    x = np.array(rows)
    if bounds.max_length is not None:
        x = bounds.max_length * np.array([_unit(row) for row in x])
    if bounds.shortens:
        x = bounds.clip_x(x)
    x = np.unique(x, axis=0)
    targets = extreme_targets(problem)
    return np.repeat(x, len(targets), axis=0), np.tile(targets, len(x))


def _directions(problem: Problem, free: np.ndarray, limit: np.ndarray) -> list[np.ndarray]:
    """Where single columns, or differences of vertices, point."""
    size = problem.n_features
    columns = [limit[j] * np.eye(1, size, j)[0] for j in (np.flatnonzero(free)[-1:])]
    if not isinstance(problem.set, PolytopeSet):
        return columns
    vertices = [problem.set.vertex(i).dense() for i in range(min(problem.set.n_vertices, 8))]
    apart = [np.sign(v - w) * limit for v, w in itertools.combinations(vertices, 2)]
    return [*columns, *apart]


def extreme_targets(problem: Problem) -> np.ndarray:
    """Every extreme target: both ends of the range, or one code of each class."""
    if problem.loss.inner is not None:
        return np.array(problem.loss.class_targets())
    return np.array([problem.y_bound, -problem.y_bound])


def _furthest(problem: Problem, x: np.ndarray, y: np.ndarray) -> tuple[int, int | None, float]:
    """The two rows, or under add-remove the one, whose exchange changes the first query most."""
    gradient = Gradient(problem, problem.set.start())
    summands = np.array(
        [
            LocalEngine(x[i : i + 1], y[i : i + 1], problem.bounds).total(gradient)
            for i in range(len(x))
        ],
        dtype=np.float64,
    )
    answers = gradient.from_total(summands)
    if isinstance(problem.set, PolytopeSet):
        query = VertexUtilities(problem, problem.set.start())
        utilities = np.array([problem.set.utilities(answer) for answer in answers])
        if query.symmetric:
            utilities = np.hstack([utilities, -utilities])
        sensitivity = 2 * query.sensitivity("linf")

        def change(d: np.ndarray) -> np.ndarray:
            return d.max(axis=-1) - d.min(axis=-1)
    else:
        utilities, sensitivity = answers, gradient.sensitivity("l2")

        def change(d: np.ndarray) -> np.ndarray:
            return np.linalg.norm(d, axis=-1)

    if problem.adjacency == ADD_REMOVE:
        sizes = change(utilities) / sensitivity
        return int(np.argmax(sizes)), None, float(sizes.max())
    best, allowed = (0, 0, -1.0), exchangeable(problem, x)
    for i, row in enumerate(utilities):
        sizes = np.where(allowed[i], change(utilities - row) / sensitivity, -1.0)
        j = int(np.argmax(sizes))
        if sizes[j] > best[2]:
            best = (i, j, float(sizes[j]))
    return best


def first_problem(model: Any, n_rows: int, n_features: int) -> Problem:
    """What the first fit of a model solves on data of this shape."""
    return plan(model.request_for_shape(n_rows, n_features)).problems[0]


def labels_of(model: Any, targets: np.ndarray) -> np.ndarray:
    """Targets of the loss as the estimator wants them: classifiers have labels, not codes."""
    if not hasattr(model, "classes"):
        return targets
    return model.declared_classes()[targets.astype(int)]


def _unit(v: np.ndarray) -> np.ndarray:
    return v / (length(v) or 1.0)
