"""From a projected vector back to a sparse one: the smallest theta with Phi theta = v.

Everything here works on public vectors. Nothing reads a row and nothing is charged.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
from scipy.optimize import linprog, nnls

from riata.errors import Incompatible, InvalidArgument
from riata.projections import Projection
from riata.public import public_normals
from riata.sets.base import ConstraintSet, conjugate
from riata.sets.group_l1 import GroupL1Ball
from riata.sets.l1 import L1Ball
from riata.sets.lp import L2Ball, LpBall
from riata.sets.polytope import Polytope
from riata.sets.simplex import Simplex
from riata.vectors import length

#: The largest relative difference between what is found and what is proved to be best.
GAP = 1e-8

#: How much of a vector may be missed before it counts as out of reach.
MISS = 1e-9


def lift(constraint: ConstraintSet, projection: Projection, v: np.ndarray) -> np.ndarray:
    """The theta with Phi theta = v and the smallest norm, the norm whose unit ball is the set.

    An error if there is no such theta, as for a simplex whose cone does not reach v.
    """
    constraint, v = _checked(constraint, projection, v)
    theta = _smallest(constraint, projection, v)
    if theta is None:
        raise InvalidArgument(
            f"v is out of reach: no multiple of a point of {constraint} is projected to it. "
            "Use `lifted`, which takes the nearest point of the set in its place."
        )
    return theta


def lifted(constraint: ConstraintSet, projection: Projection, v: np.ndarray) -> np.ndarray:
    """The lift of v if it lies in the set, and else the point of the set that comes nearest to v.

    The lift is at most as large as the smallest point of the set that is projected to v. A set
    that misses the origin, such as a simplex, may not hold it for being too small.
    """
    constraint, v = _checked(constraint, projection, v)
    theta = _smallest(constraint, projection, v)
    if theta is not None and constraint.contains(theta):
        return theta
    return into_set(constraint, projection, v)


def _checked(
    constraint: ConstraintSet, projection: Projection, v: np.ndarray
) -> tuple[ConstraintSet, np.ndarray]:
    v = np.asarray(v, dtype=np.float64)
    if v.shape != (projection.dimension,) or not np.all(np.isfinite(v)):
        raise InvalidArgument(
            f"v has shape {v.shape}: it must hold {projection.dimension} finite numbers, one for "
            "each dimension of the projection."
        )
    return constraint.sized(projection.n_features), v


def _smallest(
    constraint: ConstraintSet, projection: Projection, v: np.ndarray
) -> np.ndarray | None:
    """The lift, or None if v is out of reach."""
    if isinstance(constraint, Polytope):
        mixture = _smallest_of(Simplex(1.0), _mixtures(constraint, projection), v)
        return None if mixture is None else constraint.vertices.T @ mixture
    return _smallest_of(constraint, projection, v)


def _smallest_of(constraint: ConstraintSet, phi: Linear, v: np.ndarray) -> np.ndarray | None:
    if not np.any(v):
        return np.zeros(phi.n_features)
    equations = Equations.of(phi, v)
    if equations is None:
        return None
    p = constraint.p if isinstance(constraint, LpBall | L2Ball) else None
    if isinstance(constraint, L1Ball) or p == 1:
        theta = _few(equations, signed=True)
    elif isinstance(constraint, Simplex):
        theta = _few(equations, signed=False)
    elif isinstance(constraint, GroupL1Ball):
        theta = _few_groups(equations, constraint.codes())
    elif p is None:
        raise Incompatible(
            f"a projection of {phi.n_features} columns",
            f"{constraint}",
            because="no way back from a projection into this set is known",
            instead="Use L1Ball, GroupL1Ball, Simplex, L2Ball, LpBall or Polytope",
        )
    elif p == 2:
        theta = equations.back(equations.target)
    elif np.isinf(p):
        theta = _flat(equations)
    else:
        theta = _smooth(equations, p)
    return None if theta is None else equations.scale * theta


class Linear(Protocol):
    """What is needed of Phi."""

    @property
    def n_features(self) -> int: ...

    def forward(self, theta: np.ndarray) -> np.ndarray: ...

    def back(self, v: np.ndarray) -> np.ndarray: ...

    def columns(self, indices: np.ndarray) -> np.ndarray: ...


@dataclass(frozen=True, eq=False)
class Matrix:
    """A matrix of any shape, in the words of a projection."""

    entries: np.ndarray

    @property
    def n_features(self) -> int:
        return int(self.entries.shape[1])

    def forward(self, theta: np.ndarray) -> np.ndarray:
        return self.entries @ theta

    def back(self, v: np.ndarray) -> np.ndarray:
        return self.entries.T @ v

    def columns(self, indices: np.ndarray) -> np.ndarray:
        return self.entries[:, indices]


def _mixtures(polytope: Polytope, projection: Projection) -> Matrix:
    """The projected vertices, one a column: a polytope is a simplex of its vertices' weights."""
    return Matrix(np.ascontiguousarray(projection.rows(polytope.vertices).T))


@dataclass(frozen=True, eq=False)
class Equations:
    """The equations Phi theta = v, mixed so that their rows are orthonormal and v has length 1.

    No solution changes but for the factor `scale`, and neither the units of Phi and v nor rows that
    repeat others matter any more.
    """

    phi: Linear
    mix: np.ndarray
    target: np.ndarray
    scale: float

    @classmethod
    def of(cls, phi: Linear, v: np.ndarray) -> Equations | None:
        """The mixed equations, or None if no theta solves them."""
        gram = _weighted_gram(phi.columns, len(v), np.ones(phi.n_features))
        values, vectors = np.linalg.eigh(gram)
        kept = values > 1e-13 * max(values[-1], 0.0)
        vectors = vectors[:, kept]
        if length(v - vectors @ (vectors.T @ v)) > MISS * length(v):
            return None
        mix = vectors.T / np.sqrt(values[kept])[:, None]
        target = mix @ v
        return cls(phi, mix, target / length(target), length(target))

    @property
    def size(self) -> int:
        return self.phi.n_features

    def forward(self, theta: np.ndarray) -> np.ndarray:
        return self.mix @ self.phi.forward(theta)

    def back(self, y: np.ndarray) -> np.ndarray:
        return self.phi.back(self.mix.T @ y)

    def columns(self, indices: np.ndarray) -> np.ndarray:
        return self.mix @ self.phi.columns(indices)

    def solved(self, theta: np.ndarray) -> np.ndarray:
        """The solution nearest to theta."""
        for _ in range(2):
            theta = theta + self.back(self.target - self.forward(theta))
        return theta


def _weighted_gram(
    columns: Callable[[np.ndarray], np.ndarray], rows: int, weights: np.ndarray
) -> np.ndarray:
    """The sum of weight_j a_j a_j' over all columns a_j, a block of columns at a time."""
    gram = np.zeros((rows, rows))
    step = max(1, 2**21 // rows)
    for first in range(0, len(weights), step):
        indices = np.arange(first, min(first + step, len(weights)))
        block = columns(indices)
        gram += (block * weights[indices]) @ block.T
    return gram


# The l1 ball and the simplex: a linear program in which few columns ever matter.


def _few(equations: Equations, signed: bool) -> np.ndarray | None:
    """The solution with the smallest sum of sizes, all of them non-negative unless `signed`.

    A linear program over a few columns gives a price to each equation. A column that is worth more
    than it costs at these prices comes in, and when there is none the prices prove that no other
    column can help. The first program finds some solution, the second one the smallest.
    """
    master = Master(equations, signed)
    if not master.reach():
        return None
    return master.shrink()


class Master:
    """The columns that are in, each with a sign, and the programs over them."""

    def __init__(self, equations: Equations, signed: bool) -> None:
        self.equations = equations
        self.signed = signed
        self.indices = np.empty(0, dtype=np.intp)
        self.signs = np.empty(0)
        self.entries = np.empty((len(equations.target), 0))
        # A typical column gets length 1, so that the tolerances of a program mean something.
        self.scale = np.sqrt(equations.size / len(equations.target))
        self.add(equations.target, -np.inf)

    def add(self, prices: np.ndarray, cost: float) -> bool:
        """Let in the columns that are worth the most, and say whether there were any."""
        worth = self.scale * self.equations.back(prices)
        signs = np.where(worth < 0, -1.0, 1.0) if self.signed else np.ones(len(worth))
        worth *= signs
        known = signs[self.indices] == self.signs
        worth[self.indices[known]] = -np.inf
        some = min(len(worth), max(50, 2 * len(prices)))
        best = np.argpartition(-worth, some - 1)[:some]
        best = np.sort(best[worth[best] > cost + MISS])
        if len(best) == 0:
            return False
        columns = self.scale * self.equations.columns(best) * signs[best]
        self.indices = np.append(self.indices, best)
        self.signs = np.append(self.signs, signs[best])
        self.entries = np.hstack([self.entries, columns])
        return True

    def program(self, costs: np.ndarray, entries: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The best weights and the prices that prove it; no weights if there are none."""
        tight = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}
        target = self.equations.target
        found = linprog(costs, A_eq=entries, b_eq=target, method="highs", options=tight)
        if found.x is None:
            return np.empty(0), np.empty(0)
        return found.x, found.eqlin.marginals

    def reach(self) -> bool:
        """Let in columns until they reach the target, or until none brings them nearer."""
        spare = np.eye(len(self.equations.target))
        while True:
            n = len(self.indices)
            costs = np.append(np.zeros(n), np.ones(2 * len(spare)))
            weights, prices = self.program(costs, np.hstack([self.entries, spare, -spare]))
            if weights[n:].sum() <= MISS:
                return True
            if not self.add(prices, 0.0):
                return False

    def shrink(self) -> np.ndarray | None:
        """Let in columns until none makes the solution smaller."""
        while True:
            weights, prices = self.program(np.ones(len(self.indices)), self.entries)
            if len(weights) == 0:
                return None
            if not self.add(self.central(weights, prices), 1.0):
                break
        weights = self.exact(weights)
        theta = np.zeros(self.equations.size)
        np.add.at(theta, self.indices, self.scale * self.signs * weights)
        return theta

    def central(self, weights: np.ndarray, prices: np.ndarray) -> np.ndarray:
        """The shortest prices that prove the same.

        When fewer columns are in use than there are equations, many prices are right. Those of the
        program lie in a corner, where columns that are not in seem worth far too much.
        """
        in_use = weights > 1e-7 * weights.max()
        used = self.entries[:, in_use]
        if used.shape[1] >= len(used):
            return prices
        even = np.linalg.lstsq(used.T, np.ones(used.shape[1]))[0]
        basis = np.linalg.qr(used)[0]
        others = self.entries[:, ~in_use]
        across = others - basis @ (basis.T @ others)
        # The shortest z with across'z <= room (Lawson and Hanson 1974, chapter 23).
        room = 1 - others.T @ even
        system = -np.vstack([across, room])
        goal = np.append(np.zeros(len(across)), 1.0)
        try:
            left = system @ nnls(system, goal)[0] - goal
        except RuntimeError:
            return prices
        if abs(left[-1]) < 1e-9:
            return prices
        central = even - left[:-1] / left[-1]
        right = np.abs(used.T @ central - 1).max() <= MISS
        return central if right and (others.T @ central).max() <= 1 + MISS else prices

    def exact(self, weights: np.ndarray) -> np.ndarray:
        """The same solution to rounding, from as few of the columns as will do."""
        target = self.equations.target
        for share in (1e-5, 1e-7, 1e-9):
            kept = np.flatnonzero(weights > share * weights.max())
            values = np.linalg.lstsq(self.entries[:, kept], target)[0]
            missed = length(target - self.entries[:, kept] @ values)
            if values.min() >= 0 and missed <= 1e-12:
                out = np.zeros(len(weights))
                out[kept] = values
                return out
        return weights


# Groups: the same, with whole groups of columns and a barrier in place of the linear program.


def _few_groups(equations: Equations, codes: np.ndarray) -> np.ndarray:
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
    _report(1 - proved / size, 1e-6)

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
        bent = sums(rows * (g / slack))
        curvature = (rows * (2 / slack)) @ rows.T + 4 * bent @ bent.T
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


# Exponents between 1 and infinity: smooth enough for Newton's method on the prices.


def _smooth(equations: Equations, p: float) -> np.ndarray:
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
    _report(gap, GAP)
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
        bend = (q - 1) * np.maximum(size, 1e-12) ** (
            q - 2
        )  # no entry so loose that others are lost
        missed = height * target - equations.forward(theta)
        step = _solve(_weighted_gram(equations.columns, len(y), bend), missed)
        dg = equations.back(step)
        solution = equations.solved((theta + bend * dg) / height)
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


def _solve(matrix: np.ndarray, right: np.ndarray) -> np.ndarray:
    """The solution of symmetric equations, without the directions that rounding has flattened."""
    values, vectors = np.linalg.eigh(matrix)
    kept = values > 1e-15 * values[-1]
    return vectors[:, kept] @ ((vectors[:, kept].T @ right) / values[kept])


def _flat(equations: Equations) -> np.ndarray:
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


def _report(gap: float, allowed: float) -> None:
    if gap > allowed:
        warnings.warn(
            f"The lift is proved to be the smallest only up to a part of {gap:.1g}. It is usable, "
            "but the equations are close to contradicting each other.",
            RuntimeWarning,
            stacklevel=2,
        )


# The nearest point of the set, for what is out of its reach.


def into_set(constraint: ConstraintSet, projection: Projection, v: np.ndarray) -> np.ndarray:
    """The point theta of the set that brings Phi theta nearest to v."""
    constraint, v = _checked(constraint, projection, v)
    if isinstance(constraint, Polytope):
        vertices = _mixtures(constraint, projection)
        simplex = Simplex(1.0, constraint.n_vertices)
        return constraint.vertices.T @ _nearest(simplex, vertices, v)
    return _nearest(constraint, projection, v)


def _nearest(constraint: ConstraintSet, phi: Linear, v: np.ndarray) -> np.ndarray:
    """Descent over few columns for as long as no other column can help, where the set allows it."""
    theta = constraint.start().dense()
    scale = np.square(v).sum() + np.square(phi.forward(theta)).sum()
    if isinstance(constraint, LpBall) and constraint.p == 1:
        constraint = L1Ball(constraint.radius, constraint.n_features)
    if not isinstance(constraint, L1Ball | Simplex | GroupL1Ball):
        return _descent(constraint, phi, v, theta, scale)
    grouped = isinstance(constraint, GroupL1Ball)
    codes = constraint.codes() if grouped else np.arange(phi.n_features)  # type: ignore[union-attr]
    inside = theta != 0
    while True:
        image = phi.forward(theta)
        gradient = phi.back(image - v)
        furthest = constraint.minimiser(gradient)
        gap = gradient @ theta - furthest.dot(gradient)
        if _near_enough(gap, image - v, scale) or np.all(inside[furthest.support]):
            return theta
        if isinstance(constraint, Simplex):
            worth = -gradient
        else:
            worth = np.sqrt(np.bincount(codes, weights=np.square(gradient)))[codes]
        worth[inside] = -np.inf
        some = min(len(worth), 2 * len(v))
        inside |= worth >= np.partition(worth, len(worth) - some)[len(worth) - some]
        columns = np.flatnonzero(inside)
        part: ConstraintSet
        if isinstance(constraint, GroupL1Ball):
            part = GroupL1Ball(codes[columns], constraint.radius)
        else:
            part = replace(constraint, n_features=len(columns))
        theta[columns] = _descent(part, Matrix(phi.columns(columns)), v, theta[columns], scale)


def _descent(
    constraint: ConstraintSet, phi: Linear, v: np.ndarray, theta: np.ndarray, scale: float
) -> np.ndarray:
    """Accelerated projected gradient descent, which starts anew where it goes uphill.

    It stops when the linear minimiser proves that the squared distance is within a part of 1e-8
    of the smallest, or is so near to it that rounding hides the difference.
    """
    bend = _largest_stretch(phi, len(v))
    image = phi.forward(theta)
    gradient = phi.back(image - v)
    ahead, ahead_image, ahead_gradient, momentum = theta, image, gradient, 1.0
    for _ in range(50_000):
        furthest = constraint.minimiser(gradient)
        gap = gradient @ theta - furthest.dot(gradient)
        if _near_enough(gap, image - v, scale):
            return theta
        while True:
            new = constraint.project(ahead - ahead_gradient / bend)
            new_image = phi.forward(new)
            moved = np.square(new - ahead).sum()
            stretched = np.square(new_image - ahead_image).sum()
            if stretched <= bend * moved + 1e-15 * np.square(new_image).sum():
                break
            bend *= 1.3
        new_gradient = phi.back(new_image - v)
        uphill = (ahead - new) @ (new - theta) > 0
        later = 1.0 if uphill else (1 + np.sqrt(1 + 4 * momentum**2)) / 2
        push = 0.0 if uphill else (momentum - 1) / later
        ahead = new + push * (new - theta)
        ahead_image = new_image + push * (new_image - image)
        ahead_gradient = new_gradient + push * (new_gradient - gradient)
        theta, image, gradient, momentum = new, new_image, new_gradient, later
    warnings.warn(
        "The point of the set is not yet proved to be the nearest to v. It lies in the set and is "
        "usable.",
        RuntimeWarning,
        stacklevel=2,
    )
    return theta


def _near_enough(gap: float, missed: np.ndarray, scale: float) -> bool:
    distance = np.square(missed).sum()
    return bool(gap <= 0.5 * GAP * distance + 1e-15 * scale or distance <= 1e-18 * scale)


def _largest_stretch(phi: Linear, rows: int) -> float:
    """The largest eigenvalue of Phi Phi', nearly, by power iteration."""
    v, value = public_normals((rows,), "riata power iteration"), 0.0
    for _ in range(50):
        v = phi.forward(phi.back(v / length(v)))
        value, before = length(v), value
        if value <= before * 1.001:
            break
    return 1.01 * value
