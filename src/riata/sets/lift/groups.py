"""The smallest sum of lengths of groups: a cone program by column generation."""

from __future__ import annotations

import numpy as np

from riata.sets.lift.equations import GAP, MISS, Equations, report
from riata.vectors import length


def fewest_groups(equations: Equations, codes: np.ndarray) -> np.ndarray:
    """The solution whose groups have the smallest sum of lengths."""
    target, order = equations.target, np.argsort(codes, kind="stable")
    members = np.bincount(codes)
    inside = np.zeros(len(members), dtype=bool)
    prices, size, theta = target, np.inf, np.zeros(equations.size)

    def solve() -> tuple[np.ndarray, np.ndarray, float]:
        """The best theta on the groups inside; a size of infinity if they do not reach."""
        columns = order[inside[codes[order]]]
        entries, theta = equations.columns(columns), np.zeros(equations.size)
        missed = target - entries @ np.linalg.lstsq(entries, target)[0]
        if length(missed) > MISS:
            return theta, missed, np.inf
        theta[columns], prices, size = _smallest_groups(entries, codes[columns], target)
        return theta, prices, size

    while True:
        worth = np.sqrt(np.bincount(codes, weights=np.square(equations.back(prices))))
        proved = target @ prices / worth.max()
        fresh = np.flatnonzero(~inside & (worth > (1.0 if size < np.inf else 0.0)))
        if len(fresh) == 0 or proved >= (1 - GAP) * size:
            break
        fresh = fresh[np.argsort(-worth[fresh], kind="stable")]
        some = np.searchsorted(np.cumsum(members[fresh]), 2 * len(target)) + 1
        inside[fresh[:some]] = True
        theta, prices, size = solve()
    report(1 - proved / size, 1e-6)

    lengths = np.sqrt(np.bincount(codes, weights=np.square(theta)))
    inside = lengths > 1e-5 * lengths.max()  # the barrier leaves no group quite at 0
    fewer, _, their_size = solve()
    return fewer if their_size <= max(size, proved / (1 - GAP)) else theta


def _smallest_groups(
    entries: np.ndarray, codes: np.ndarray, target: np.ndarray
) -> tuple[np.ndarray, np.ndarray, float]:
    """The solution with the smallest sum of lengths, prices that prove it, and the sum.

    The prices y solve: maximise <target, y> with every group of entries' y no longer than 1. A
    barrier keeps them inside, and Newton's method follows its minimiser as the barrier falls. Each
    step of Newton's method also gives a theta that solves the equations.
    """
    firsts = np.flatnonzero(np.append(True, codes[1:] != codes[:-1]))
    counts = np.diff(np.append(firsts, len(codes)))
    u, s, rows = np.linalg.svd(entries, full_matrices=False)
    kept = s > 1e-10 * s[0]
    rows, back = rows[kept], u[:, kept] / s[kept]
    goal = back.T @ target

    def sums(values: np.ndarray) -> np.ndarray:
        return np.add.reduceat(values, firsts, axis=-1)

    def barrier(y: np.ndarray, height: float) -> float:
        slack = 1 - sums(np.square(rows.T @ y))
        return np.inf if slack.min() <= 0 else -goal @ y / height - np.log(slack).sum()

    y, height = np.zeros(len(goal)), length(goal)
    best, found = np.inf, (np.zeros(len(codes)), y)
    for _ in range(300):
        g = rows.T @ y
        slack = np.repeat(1 - sums(np.square(g)), counts)
        theta = 2 * height * g / slack
        scaled = sums(rows * (g / slack))
        curvature = (rows * (2 / slack)) @ rows.T + 4 * scaled @ scaled.T
        missed = goal - rows @ theta
        step = np.linalg.solve(curvature, missed / height)
        dg = rows.T @ step
        turn = np.repeat(sums(g * dg), counts)
        theta += 2 * height * (dg / slack + 2 * g * turn / slack**2)
        size = np.sqrt(sums(np.square(theta))).sum()
        longest = max(np.sqrt(sums(np.square(g))).max(), 1e-300)
        proved = goal @ y / longest
        if size - proved < best:
            best, found = size - proved, (theta, y / longest)
        if best <= 0.1 * GAP * size:
            break
        decrease = missed @ step / height
        if decrease < 1e-20:
            break
        t, now = 1.0, barrier(y, height)
        while barrier(y + t * step, height) > now - 0.1 * t * decrease and t > 1e-10:
            t *= 0.6
        y = y + t * step
        if decrease < 0.5:
            height *= 0.15
    theta, y = found
    return theta, back @ y, float(np.sqrt(sums(np.square(theta))).sum())
