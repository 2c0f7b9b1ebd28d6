"""How long a lift takes in a thousand dimensions, for every set that has one.

A point of the set is projected from 100,000 columns to 1,000 dimensions, with and without noise as
a private solver leaves it. Each line: the processor time of the lift; how far the result is from
the set, relative to it; and how far its image is from the vector, relative to its length. With
noise the vector lies far outside the image of the small sets, and the image is the nearest one.

    python benchmarks/lift.py [--quick]
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import numpy as np

from riata.projections import GaussianProjection, Projection, StructuredProjection
from riata.sets import GroupL1Ball, L1Ball, L2Ball, LpBall, Polytope, Simplex
from riata.sets.lift import Liftable, lift_within

from results import keep, show

NOISE = 0.3


def sets(p: int, rng: np.random.Generator) -> list[Liftable]:
    corners = rng.standard_normal((200, p)) / np.sqrt(p)
    return [
        L1Ball(1.0, p),
        GroupL1Ball(10, 1.0, p),
        L2Ball(1.0, p),
        Simplex(1.0, p),
        LpBall(float("inf"), 10 / p, p),
        LpBall(1.5, 1.0, p),
        Polytope(corners),
    ]


def point(constraint: Liftable, p: int, rng: np.random.Generator) -> np.ndarray:
    """A point of the set: in its middle for sets that hold the origin."""
    if isinstance(constraint, Polytope):
        return constraint.vertices.T @ rng.dirichlet(np.ones(constraint.n_vertices))
    theta = np.zeros(p)
    theta[rng.choice(p, 10, replace=False)] = 0.1
    if isinstance(constraint, Simplex):
        return theta
    return 0.5 * constraint.project(theta)


def outside(constraint: Liftable, theta: np.ndarray) -> float:
    if isinstance(constraint, Polytope):  # a mixture of its corners by construction
        return 0.0 if constraint.contains(theta, 1e-9) else float("nan")
    size = constraint.minkowski_norm(theta)
    return abs(size - 1) if isinstance(constraint, Simplex) else max(0.0, size - 1)


def measure(phi: Projection, constraint: Liftable, noise: float) -> dict[str, Any]:
    rng = np.random.default_rng(1)
    v = phi.forward(point(constraint, phi.n_features, rng))
    v += noise * np.linalg.norm(v) * rng.standard_normal(len(v)) / np.sqrt(len(v))
    start = time.process_time()
    theta = lift_within(constraint, phi, v)
    seconds = time.process_time() - start
    return {
        "projection": type(phi).__name__,
        "set": str(constraint),
        "noise": noise,
        "seconds": seconds,
        "outside": outside(constraint, theta),
        "missed": float(np.linalg.norm(phi.forward(theta) - v) / np.linalg.norm(v)),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="300 x 10,000")
    m, p = (300, 10_000) if parser.parse_args().quick else (1_000, 100_000)
    rows = [
        measure(phi, each, noise)
        for phi in (GaussianProjection(m, p), StructuredProjection(m, p))
        for each in sets(p, np.random.default_rng(0))
        for noise in (0.0, NOISE)
    ]
    show(f"The lift from {m:,} dimensions to {p:,} columns", rows)
    keep("lift", {"dimension": m, "columns": p, "rows": rows})


if __name__ == "__main__":
    main()
