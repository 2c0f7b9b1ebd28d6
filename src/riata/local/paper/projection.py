"""What Algorithms 2 and 3 do to a row before it is sent: project, and clip after that."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import numpy as np
from scipy import sparse

from riata.arguments import check_positive, check_whole, is_auto
from riata.bounds import Bounds
from riata.errors import InvalidArgument
from riata.projections import (
    GaussianProjection,
    GivenProjection,
    Projection,
    SeededProjection,
)

#: The part of the rows that may be shortened after projecting, by the choice of the reach.
_SHORTENED = 1e-3

_UNIT_BALL = Bounds(1.0, norm="l2")


def public_projection(dimension: int, n_features: int, seed: int) -> Projection:
    """The matrix that everybody shares: the identity if it would not make rows shorter."""
    seed = check_whole("projection_seed", seed, "it names the public projection", 0)
    return _cached_projection(min(dimension, n_features), n_features, seed)


@lru_cache(maxsize=2)
def _cached_projection(dimension: int, n_features: int, seed: int) -> Projection:
    if dimension == n_features:
        return GivenProjection(np.eye(n_features))
    return GaussianProjection(dimension, n_features, seed)


def is_identity(projection: Projection) -> bool:
    """Whether rows are sent as they are."""
    if not isinstance(projection, GivenProjection):
        return False
    return np.array_equal(projection.entries, np.eye(projection.n_features))


def describe_projection(projection: Projection, seed: int) -> str:
    """The projection, for a Statement."""
    if is_identity(projection):
        return "none"
    return f"seed {seed}" if isinstance(projection, SeededProjection) else "given"


def check_dimension(dimension: Any, automatic: float | None, n_features: int) -> int:
    """The number of coordinates that are sent: at most as many as there are."""
    if is_auto(dimension):
        if automatic is None:
            raise InvalidArgument(
                'dimension="auto" follows from the public number of people, which a single device '
                "does not know. Pass n_users, or a whole number as dimension."
            )
        return max(1, min(n_features, math.ceil(automatic)))
    why = "it is the number of coordinates that a device sends"
    return min(n_features, check_whole("dimension", dimension, why))


def check_reach(reach: Any, projection: Projection) -> float:
    """The radius to which projected rows are clipped.

    "auto" is 1 without a projection, and for a given matrix the largest length of a column, so that
    rows with one entry are not shortened. With a normal matrix, a fixed row of length 1 is longer
    than 1 + sqrt(2 log(1000) / dimension) for at most one in a thousand.
    """
    if is_auto(reach):
        if is_identity(projection):
            return 1.0
        if not isinstance(projection, SeededProjection):
            return float(projection.column_norms().max())
        return 1 + math.sqrt(2 * math.log(1 / _SHORTENED) / projection.dimension)
    return check_positive("reach", reach, "projected rows are clipped to this length")


def given_projection(matrix: Any, n_features: int) -> Projection:
    """A public matrix that somebody chose, with a row for each coordinate that is sent."""
    made = matrix if isinstance(matrix, Projection) else GivenProjection(np.asarray(matrix, float))
    if made.n_features != n_features:
        raise InvalidArgument(
            f"The projection has {made.n_features} columns and rows have {n_features}. Pass a "
            "matrix with a column for each."
        )
    return made


def project_rows(x: Any, projection: Projection, radius: float = 1.0) -> np.ndarray:
    """Rows divided by the radius, projected. Those longer than it are shortened first."""
    rows: Any = _UNIT_BALL.clip_x(x if radius == 1.0 else x / radius)
    if not is_identity(projection):
        return projection.rows(rows)
    return rows.toarray() if sparse.issparse(rows) else rows
