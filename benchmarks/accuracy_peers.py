"""What others have published, in plain floating point, for benchmarks/accuracy.py.

Every peer is calibrated to the same true guarantee, (epsilon, delta) for replaced rows: not by the
constants printed in its paper, but by exact composition or by riata's accountants. Slopes are
bounded at the public iterate, by 2 (|y| + |x| ||theta_t||_1), and cut only where the method cuts.
No peer fits an intercept, and none is needed. A peer returns the excess of every point of its grid
of steps, radii, step sizes and the like; the caller takes the best, which no user could.

The squared loss sees the rows through X'X and X'y alone, so the grid of a peer that cuts nothing
is run on those.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable, Iterator
from functools import cache, cached_property
from itertools import product
from typing import Any

import numpy as np
from scipy import sparse
from scipy.optimize import brentq

from riata.privacy import Budget, calibrate
from riata.privacy.events import BoundedRange, Event, Gaussian, ObjectivePerturbed, compose

from accuracy_cases import Sample
from noise import exact_composition

#: Counted up when a peer changes, so that kept results are measured again.
VERSION = 1

DELTA = 1e-6

#: A peer's excess at each point of its grid, whose coordinates are written out.
Grid = dict[str, float]

RADII = (0.5, 1.0, 2.0)
STEPS = (1, 2, 4, 8, 16, 32, 64, 128, 256)

#: Columns from which on grids are coarser and X'X is not stored for sparse rows.
MANY_COLUMNS = 5_000

#: Steps towards the minimum of an objective that can be minimised without looking at rows.
EXACT_STEPS = 150


#: The excess of a model that is no longer finite.
DIVERGED = 1e9


class View:
    """A sample as the peers see it: single precision, and X'X / n by columns."""

    def __init__(self, sample: Sample) -> None:
        self.case, self.truth = sample.case, sample.theta
        self.sparse = sparse.issparse(sample.x)
        if self.sparse:
            self.x = sparse.csr_array(sample.x, dtype=np.float32)
            self.by_column = sparse.csr_array(self.x.T)  # row j is column j of the rows
            self.fresh = sparse.csr_array(sample.fresh, dtype=np.float32)
        else:
            self.x = np.asfortranarray(sample.x, dtype=np.float32)
            self.by_column = self.x.T
            self.fresh = sample.fresh.astype(np.float32)
        self.y = sample.y.astype(np.float32)
        self.n, self.p = self.x.shape
        self.reach, self.most_y = sample.case.bounds.x, sample.case.bounds.y
        self.length = math.sqrt(self.p) * self.reach  # of a row, for who needs to know
        self.answers = self.by_column @ self.y / self.n
        squares = self.x.multiply(self.x) if self.sparse else np.square(self.x)
        self.curvature = float(squares.sum(axis=0, dtype=np.float64).mean() / self.n)
        self.wide = self.p >= MANY_COLUMNS
        self._columns: dict[int, np.ndarray] = {}

    @cached_property
    def gram(self) -> np.ndarray:
        return self.x.T @ self.x / np.float32(self.n)

    def column(self, j: int) -> np.ndarray:
        """Column j of X'X / n."""
        if not self.sparse:
            return self.gram[j]
        if j not in self._columns:
            rows = self.by_column.indices[self.by_column.indptr[j] : self.by_column.indptr[j + 1]]
            self._columns[j] = np.asarray(self.x[rows].sum(axis=0), dtype=np.float32) / self.n
        return self._columns[j]

    def times(self, thetas: np.ndarray) -> np.ndarray:
        """X'X / n times each column."""
        if self.sparse:
            return self.by_column @ (self.x @ thetas) / np.float32(self.n)
        return self.gram @ thetas

    def gradient(self, theta: np.ndarray) -> np.ndarray:
        """The gradient of the mean squared residual at a model with few columns."""
        found = -self.answers
        for j in np.flatnonzero(theta):
            found = found + np.float32(theta[j]) * self.column(int(j))
        return 2 * found

    @cached_property
    def top(self) -> float:
        """The largest eigenvalue of X'X / n."""
        v = np.ones((self.p, 1), dtype=np.float32)
        for _ in range(20):
            v = self.times(v / np.linalg.norm(v))
        return float(np.linalg.norm(v))

    def slope_bound(self, theta: np.ndarray) -> float:
        return 2 * (self.most_y + self.reach * float(np.abs(theta).sum()))

    def entry_sensitivity(self, slope: float) -> float:
        """How far a replaced row moves an entry of the mean gradient."""
        return 2 * slope * self.reach / self.n

    def excesses(self, models: dict[str, np.ndarray]) -> Grid:
        """The excess of every model: as Sample.excess, for all of them at once."""
        thetas = np.stack(list(models.values()), axis=1).astype(np.float32)
        truth = self.fresh @ self.truth.astype(np.float32)
        errors = self.fresh @ thetas - truth[:, None]
        found = np.mean(np.square(errors, dtype=np.float64), axis=0) / np.mean(truth**2)
        found = np.nan_to_num(found, nan=DIVERGED, posinf=DIVERGED)
        return {label: float(f"{e:.5g}") for label, e in zip(models, found, strict=True)}


# From a budget to noise.


def _strength(epsilon: float, event_at: Callable[[float], Event]) -> float:
    return calibrate(event_at, Budget(epsilon, DELTA))


@cache
def pure_epsilon(epsilon: float, steps: int) -> float:
    """The epsilon of each of `steps` pure mechanisms, composed exactly."""
    low, high = epsilon / steps, 4 * epsilon
    return float(brentq(lambda e: exact_composition(e, steps, DELTA) - epsilon, low, high))


@cache
def choice_epsilon(epsilon: float, steps: int) -> float:
    """The epsilon of each of `steps` exponential mechanisms."""
    return _strength(epsilon, lambda e: compose((BoundedRange(e), steps)))


@cache
def gaussian_scale(epsilon: float, steps: int) -> float:
    """The noise multiplier of each of `steps` Gaussian releases."""
    return math.sqrt(steps) / _strength(epsilon, lambda s: Gaussian(1 / s))


@cache
def peel_scales(epsilon: float, steps: int, chosen: int) -> tuple[float, float]:
    """For steps that choose some columns and read their values: half of each step's rho to both.

    Returns the epsilon of one choice and the noise multiplier of the values of a step.
    """

    def scales(q: float) -> tuple[float, float]:
        return 2 * q / math.sqrt(chosen), 1 / q  # rho = q^2 / 2 each

    def event(q: float) -> Event:
        choice, multiplier = scales(q)
        return compose((BoundedRange(choice), steps * chosen), (Gaussian(multiplier), steps))

    return scales(_strength(epsilon, event))


# The peers.


def _frank_wolfe(view: View, noise_of: Callable[[int], Callable[[float, int], np.ndarray]]) -> Grid:
    """Talwar, Thakurta and Zhang (2015), Algorithm 2, with the given noise on the scores."""
    models = {}
    for steps, share in product(STEPS, RADII):
        radius, noise = share * float(np.abs(view.truth).sum()), noise_of(steps)
        theta, image = np.zeros(view.p), np.zeros(view.p)  # image is X'X theta / n
        for t in range(1, steps + 1):
            scores = 2 * radius * (view.answers - image)  # of +e_j; those of -e_j are opposite
            sensitivity = radius * view.entry_sensitivity(view.slope_bound(theta))
            noisy = np.concatenate([scores, -scores]) + noise(sensitivity, 2 * view.p)
            j, negative = int(np.argmax(noisy)) % view.p, np.argmax(noisy) >= view.p
            vertex, move = radius * (-1 if negative else 1), 2 / (t + 2)
            theta *= 1 - move
            theta[j] += move * vertex
            image = (1 - move) * image + move * vertex * view.column(j)
        models[f"T {steps}, radius {share:g}"] = theta
    return view.excesses(models)


def paper(view: View, epsilon: float, rng: np.random.Generator) -> Grid:
    """With Laplace noise, as printed: eps0-private steps, composed exactly."""

    def noise_of(steps: int) -> Callable[[float, int], np.ndarray]:
        eps0 = pure_epsilon(epsilon, steps)
        return lambda sensitivity, size: rng.laplace(scale=2 * sensitivity / eps0, size=size)

    return _frank_wolfe(view, noise_of)


def em(view: View, epsilon: float, rng: np.random.Generator) -> Grid:
    """With the exponential mechanism and its bounded-range accounting."""

    def noise_of(steps: int) -> Callable[[float, int], np.ndarray]:
        eps0 = choice_epsilon(epsilon, steps)
        return lambda sensitivity, size: rng.gumbel(scale=2 * sensitivity / eps0, size=size)

    return _frank_wolfe(view, noise_of)


def _in_ball(theta: np.ndarray, radius: float | np.ndarray) -> np.ndarray:
    """The nearest point of the Euclidean ball, for each column of a matrix."""
    size = np.linalg.norm(theta, axis=0)
    return theta * np.minimum(1, radius / np.maximum(size, 1e-30))


def _largest(v: np.ndarray, count: int) -> np.ndarray:
    return np.argpartition(v, -count)[-count:] if count < v.size else np.arange(v.size)


def _thresholding(view: View) -> Iterator[tuple[str, int, float, float]]:
    """The common grid: a label, the steps, the radius and the step size."""
    size = float(np.linalg.norm(view.truth))
    for steps, share, part in product(STEPS[:7], RADII, (0.1, 0.3, 1.0)):
        label = f"T {steps}, radius {share:g}, step {part:g}"
        yield label, steps, share * size, part / (2 * view.curvature)


def iht(view: View, epsilon: float, rng: np.random.Generator) -> Grid:
    """Iterative hard thresholding of noisy gradients (Wang, Gu 2019), the sparsity known."""
    models = {}
    for label, steps, radius, rate in _thresholding(view):
        theta, multiplier = np.zeros(view.p), gaussian_scale(epsilon, steps)
        for _ in range(steps):
            sensitivity = 2 * view.slope_bound(theta) * view.length / view.n
            noisy = view.gradient(theta) + rng.normal(scale=multiplier * sensitivity, size=view.p)
            moved = theta - rate * noisy
            kept = _largest(np.abs(moved), view.case.s)
            theta = np.zeros(view.p)
            theta[kept] = _in_ball(moved[kept], radius)
        models[label] = theta
    return view.excesses(models)


def _peel(
    v: np.ndarray,
    count: int,
    sensitivity: float,
    scales: tuple[float, float],
    rng: np.random.Generator,
) -> tuple[np.ndarray, np.ndarray]:
    """The columns of the largest entries, and their values: both noisy."""
    choice, multiplier = scales
    kept = _largest(np.abs(v) + rng.gumbel(scale=2 * sensitivity / choice, size=v.size), count)
    spread = multiplier * sensitivity * math.sqrt(count)
    return kept, v[kept] + rng.normal(scale=spread, size=kept.size)


def peeling(view: View, epsilon: float, rng: np.random.Generator) -> Grid:
    """Noisy peeling in every step (Cai, Wang, Zhang 2019), on all rows, the sparsity known."""
    models = {}
    for times, (label, steps, radius, rate) in product((1, 2), _thresholding(view)):
        count = min(times * view.case.s, view.p)
        theta, scales = np.zeros(view.p), peel_scales(epsilon, steps, count)
        for _ in range(steps):
            sensitivity = rate * view.entry_sensitivity(view.slope_bound(theta))
            moved = theta - rate * view.gradient(theta)
            kept, values = _peel(moved, count, sensitivity, scales, rng)
            theta = np.zeros(view.p)
            theta[kept] = _in_ball(values, radius)
        models[f"{label}, {times} s"] = theta
    return view.excesses(models)


def heavy_tailed(view: View, epsilon: float, rng: np.random.Generator) -> Grid:
    """Peeling of truncated rows, each step on a part of its own (Hu, Ni, Xiao, Wang 2022)."""
    size, models = float(np.linalg.norm(view.truth)), {}
    cuts = (
        (1.0,) if view.case.design in ("rademacher", "binary", "sparse binary") else (0.25, 0.5, 1)
    )
    points = list(product((1, 2), RADII, (0.1, 0.3, 1.0)))
    for steps, cut in product(STEPS[:5], cuts):
        reach, most_y = cut * view.reach, cut * view.most_y
        thetas = np.zeros((view.p, len(points)), dtype=np.float32)
        for t in range(steps):
            rows = slice(t * view.n // steps, (t + 1) * view.n // steps)
            x = view.x[rows]
            m = x.shape[0]
            x = np.clip(x, -reach, reach) if cut < 1 else x
            residuals = x @ thetas - np.clip(view.y[rows], -most_y, most_y)[:, None]
            gradients = 2 * (x.T @ residuals) / m
            for k, (times, share, part) in enumerate(points):
                count, rate = min(times * view.case.s, view.p), part / (2 * view.curvature)
                slope = 2 * (most_y + reach * float(np.abs(thetas[:, k]).sum()))
                moved = thetas[:, k] - rate * gradients[:, k]
                sensitivity = rate * 2 * slope * reach / m
                scales = peel_scales(epsilon, 1, count)  # a row is in one part only
                kept, values = _peel(moved, count, sensitivity, scales, rng)
                thetas[:, k] = 0
                thetas[kept, k] = _in_ball(values, share * size)
        for k, (times, share, part) in enumerate(points):
            label = f"T {steps}, radius {share:g}, step {part:g}, {times} s, cut {cut:g}"
            models[label] = thetas[:, k]
    return view.excesses(models)


def _greedy(view: View, epsilon: float, rng: np.random.Generator, cuts: tuple[float, ...]) -> Grid:
    """Greedy coordinate descent (Mangold, Bellet, Salmon, Tommasi 2023).

    A noisy choice of the steepest coordinate, and a step along its noisy slope. Step sizes are
    1 / (2 |x|^2), the public smoothness, and shares of the true one, which it does not know.
    Residuals are clipped at shares of |y|.
    """
    rates = {"1/M": 1 / (2 * view.reach**2)}
    rates |= {f"{part:g}": part / (2 * view.curvature) for part in (0.3, 1.0)}
    grid = list(product(STEPS[:6] if view.sparse else STEPS[:8], rates, cuts))[::-1]
    scales = [peel_scales(epsilon, steps, 1) for steps, _, _ in grid]
    thetas = np.zeros((view.p, len(grid)))
    residuals = np.asfortranarray(np.repeat(-view.y[:, None], len(grid), axis=1))
    limits = np.array([cut * view.most_y for *_, cut in grid], dtype=np.float32)
    for t in range(grid[0][0]):
        active = sum(steps > t for steps, *_ in grid)  # the first ones: they have most steps
        cut = np.clip(residuals[:, :active], -limits[:active], limits[:active])
        slopes = 2 * (view.by_column @ cut) / np.float32(view.n)
        for k in range(active):
            bound = min(2 * float(limits[k]), view.slope_bound(thetas[:, k]))
            sensitivity = view.entry_sensitivity(bound)
            (j,), (value,) = _peel(slopes[:, k], 1, sensitivity, scales[k], rng)
            move = -rates[grid[k][1]] * value
            thetas[j, k] += move
            if view.sparse:
                start, stop = view.by_column.indptr[j : j + 2]
                residuals[view.by_column.indices[start:stop], k] += np.float32(move)
            else:
                residuals[:, k] += np.float32(move) * view.x[:, j]
    models = {
        f"T {steps}, step {rate}, cut {cut:g}": thetas[:, k]
        for k, (steps, rate, cut) in enumerate(grid)
    }
    return view.excesses(models)


def greedy_cd(view: View, epsilon: float, rng: np.random.Generator) -> Grid:
    """As its theory has it: slopes are bounded, and not cut."""
    return _greedy(view, epsilon, rng, (math.inf,))


def greedy_cut(view: View, epsilon: float, rng: np.random.Generator) -> Grid:
    """With clipped slopes, as in its authors' practice for coordinate descent (2022)."""
    return _greedy(view, epsilon, rng, (0.05, 0.1, 0.2, 0.4))


def _fista(
    gradient: Callable[[np.ndarray], np.ndarray],
    nearest: Callable[[np.ndarray], np.ndarray],
    smoothness: float | np.ndarray,
    start: np.ndarray,
    steps: int = EXACT_STEPS,
) -> np.ndarray:
    """Accelerated proximal gradient steps, for all columns at once."""
    new = ahead = start
    momentum = 1.0
    for _ in range(steps):
        old, new = new, nearest(ahead - gradient(ahead) / smoothness)
        before, momentum = momentum, (1 + math.sqrt(1 + 4 * momentum**2)) / 2
        ahead = new + np.float32((before - 1) / momentum) * (new - old)
    return new


def projected(view: View, epsilon: float, rng: np.random.Generator) -> Grid:
    """Noisy gradients on randomly projected rows (Kasiviswanathan, Jin 2016).

    Projected rows are clipped at the length that rows may have. The model is lifted by the
    transposed projection, or to a sparse one by an l1 penalty.
    """
    dimensions = [m for m in (20, 50, 100, 200) if m <= view.p]
    normals = rng.standard_normal((dimensions[-1], view.p), dtype=np.float32)
    rows = view.x @ np.ascontiguousarray(normals.T)
    size, models = float(np.linalg.norm(view.truth)), {}
    for m in dimensions:
        phi, z = normals[:m] / np.float32(math.sqrt(m)), rows[:, :m] / np.float32(math.sqrt(m))
        z *= np.minimum(1, view.length / np.maximum(np.linalg.norm(z, axis=1), 1e-30))[:, None]
        gram, answers = z.T @ z / view.n, z.T @ view.y / view.n
        top = float(np.linalg.eigvalsh(gram)[-1])
        labels, found = [], []
        for steps, share, part in product(STEPS[:5], RADII, (0.1, 0.3, 1.0)):
            w, multiplier = np.zeros(m), gaussian_scale(epsilon, steps)
            for _ in range(steps):
                slope = 2 * (view.most_y + view.length * float(np.linalg.norm(w)))
                spread = multiplier * 2 * slope * view.length / view.n
                noisy = 2 * (gram @ w - answers) + rng.normal(scale=spread, size=m)
                w = _in_ball(w - part / (2 * top) * noisy, share * size)
            labels.append(f"m {m}, T {steps}, radius {share:g}, step {part:g}")
            found.append(w)
        w = np.stack(found, axis=1).astype(np.float32)
        thetas = phi.T @ w
        models |= {f"{label}, linear": thetas[:, k] for k, label in enumerate(labels)}
        largest = np.abs(thetas).max(axis=0)
        smoothness = float(np.linalg.eigvalsh(phi @ phi.T)[-1])
        for share in (0.1, 0.5):
            penalty = share * largest / np.float32(smoothness)

            def shrunk(v: np.ndarray, by: np.ndarray = penalty) -> np.ndarray:
                return np.sign(v) * np.maximum(np.abs(v) - by, 0)

            def misfit(v: np.ndarray, phi: np.ndarray = phi, w: np.ndarray = w) -> np.ndarray:
                return phi.T @ (phi @ v - w)

            lifted = _fista(misfit, shrunk, smoothness, np.zeros_like(thetas), 50)
            models |= {f"{lab}, lift {share:g}": lifted[:, k] for k, lab in enumerate(labels)}
    return view.excesses(models)


def objective(view: View, epsilon: float, rng: np.random.Generator) -> Grid:
    """Objective perturbation over the l2 ball (Kifer, Smith, Thakurta 2012).

    lambda is what a share of epsilon, spent on the determinant, allows.
    """
    size = float(np.linalg.norm(view.truth))
    grid = list(product((0.03, 0.1, 0.3, 0.6), RADII))
    radii, pull, weights = [], [], []
    for spent, share in grid:
        stretch, radius = spent * epsilon, share * size

        def event(s: float, stretch: float = stretch) -> Event:
            return ObjectivePerturbed(1 / s, stretch)

        multiplier = 1 / _strength(epsilon, event)
        slope = 2 * (view.most_y + view.length * radius)
        scale = multiplier * 2 * slope * view.length
        radii.append(radius)
        weights.append(2 * view.length**2 / math.expm1(stretch) / view.n)
        pull.append(rng.normal(scale=scale / view.n, size=view.p))
    linear = np.stack(pull, axis=1).astype(np.float32) - 2 * view.answers[:, None]
    weight, radius = np.array(weights, dtype=np.float32), np.array(radii, dtype=np.float32)
    thetas = _fista(
        lambda theta: 2 * view.times(theta) + weight * theta + linear,
        lambda theta: _in_ball(theta, radius),
        2.2 * view.top + weight,
        np.zeros_like(linear),
        20 if view.wide else EXACT_STEPS,
    )
    models = {
        f"lambda at {spent:g} epsilon, radius {share:g}": thetas[:, k]
        for k, (spent, share) in enumerate(grid)
    }
    return view.excesses(models)


def noisy_gd(view: View, epsilon: float, rng: np.random.Generator) -> Grid:
    """Dense noisy gradient descent over the l2 ball (Bassily, Smith, Thakurta 2014)."""
    size = float(np.linalg.norm(view.truth))
    parts = {"0.3": 0.3 / view.curvature, "1": 1 / view.curvature, "1/top": 1 / view.top}
    steps_tried = STEPS[:5] if view.wide else STEPS
    grid = list(product(steps_tried, RADII, parts))[::-1]
    radii = np.array([share * size for _, share, _ in grid], dtype=np.float32)
    rates = np.array([parts[part] / 2 for *_, part in grid], dtype=np.float32)
    multipliers = np.array([gaussian_scale(epsilon, steps) for steps, *_ in grid])
    thetas = np.zeros((view.p, len(grid)), dtype=np.float32)
    totals = np.zeros_like(thetas)
    for t in range(grid[0][0]):
        active = slice(0, sum(steps > t for steps, *_ in grid))
        theta = thetas[:, active]
        margins = np.minimum(
            view.reach * np.abs(theta).sum(axis=0), view.length * np.linalg.norm(theta, axis=0)
        )
        spread = multipliers[active] * 4 * (view.most_y + margins) * view.length / view.n
        noise = rng.standard_normal(theta.shape, dtype=np.float32) * spread.astype(np.float32)
        gradient = 2 * (view.times(theta) - view.answers[:, None]) + noise
        thetas[:, active] = _in_ball(theta - rates[active] * gradient, radii[active])
        totals[:, active] += thetas[:, active]
    models = {}
    for k, (steps, share, part) in enumerate(grid):
        label = f"T {steps}, radius {share:g}, step {part}"
        models[label] = thetas[:, k]
        if steps > 1:
            models[f"{label}, average"] = totals[:, k] / steps
    return view.excesses(models)


Peer = Callable[[View, float, np.random.Generator], Grid]

#: What Algorithm 2 does, with the paper's mechanism and with a better one.
FRANK_WOLFE: dict[str, Peer] = {"paper": paper, "em": em}

#: Methods that surveys compare.
SURVEY: dict[str, Peer] = {
    "iht": iht,
    "peeling": peeling,
    "heavy-tailed": heavy_tailed,
    "greedy-cd": greedy_cd,
    "greedy-cut": greedy_cut,
    "projected": projected,
    "objective": objective,
    "noisy-gd": noisy_gd,
}

PEERS: dict[str, Peer] = FRANK_WOLFE | SURVEY


def measure(name: str, view: View, epsilon: float, seed: int) -> Grid:
    """The excess of a peer at every point of its grid."""
    rng = np.random.default_rng([seed, zlib.crc32(name.encode())])
    return PEERS[name](view, epsilon, rng)


def without_privacy(sample: Sample) -> np.ndarray:
    """Least squares on the columns that matter."""
    chosen = np.flatnonzero(sample.theta)
    x: Any = sample.x[:, chosen]
    theta = np.zeros_like(sample.theta)
    x = x.toarray() if sparse.issparse(x) else x
    theta[chosen] = np.linalg.lstsq(x, sample.y, rcond=None)[0]
    return theta
