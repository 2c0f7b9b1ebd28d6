"""The smallest l_p norm for p above 1: Newton's method on the dual, or a box program."""

from __future__ import annotations

import numpy as np
from scipy.optimize import linprog

from riata.row_norms import conjugate
from riata.sets.lift.equations import GAP, Equations, report, solve, weighted_gram


def smooth(equations: Equations, p: float) -> np.ndarray:
    """The solution with the smallest lp norm, 1 < p < infinity.

    The prices y minimise sum |g_j|^q / q - <target, y>, where g = Phi'y and q is conjugate to p,
    and theta_j = |g_j|^(q-1) with the sign of g_j. The exponent goes from 2, where the solution is
    known, to p in steps that Newton's method can follow.
    """
    q = conjugate(p)
    stages = 1 + int(np.ceil(abs(np.log(q - 1)) / np.log(2.0)))
    y = equations.target
    for stage in range(1, stages + 1):
        order = 1 + (q - 1) ** (stage / stages)
        theta, y, gap = _newton(equations, y, order, GAP / 10 if stage == stages else 1e-3)
    report(gap, GAP)
    return theta


def _newton(
    equations: Equations, y: np.ndarray, q: float, enough: float
) -> tuple[np.ndarray, np.ndarray, float]:
    target, p = equations.target, conjugate(q)
    best, found = np.inf, (y, y)

    def excess(g: np.ndarray, y: np.ndarray) -> float:
        """The logarithm of ||g||_q / <target, y>, which is smallest at the best prices."""
        worth = target @ y
        return float(np.log(np.linalg.norm(g, q) / worth)) if worth > 0 else np.inf

    g = equations.back(y)
    for _ in range(100):
        top = np.abs(g).max()
        y, g = y / top, g / top
        size = np.abs(g)
        power = size ** (q - 1)
        height = (power @ size) / (target @ y)
        theta = np.sign(g) * power
        weights = (q - 1) * np.maximum(size, 1e-12) ** (
            q - 2
        )  # no entry so loose that others are lost
        missed = height * target - equations.forward(theta)
        step = solve(weighted_gram(equations.columns, len(y), weights), missed)
        dg = equations.back(step)
        solution = equations.solved((theta + weights * dg) / height)
        gap = 1 - (target @ y) / (np.linalg.norm(g, q) * np.linalg.norm(solution, p))
        if gap < best:
            best, found = gap, (solution, y)
        if best <= enough:
            break
        t, now, slope = 1.0, excess(g, y), missed @ step / (power @ size)
        while excess(g + t * dg, y + t * step) > now - 0.1 * t * slope and t > 1e-10:
            t *= 0.5
        y, g = y + t * step, g + t * dg
    return *found, float(best)


def flat(equations: Equations) -> np.ndarray:
    """The solution with the smallest largest entry: how far can theta in [-1, 1] go to v?"""
    size = equations.size
    entries = np.empty((len(equations.target), size + 1))
    entries[:, :size] = equations.columns(np.arange(size))
    entries[:, size] = -equations.target
    found = linprog(
        np.append(np.zeros(size), -1.0),
        A_eq=entries,
        b_eq=np.zeros(len(entries)),
        bounds=np.append(np.tile([[-1.0, 1.0]], (size, 1)), [[0.0, np.inf]], axis=0),
        method="highs",
    )
    return equations.solved(found.x[:size] / found.x[size])
