"""The rate of every theorem of the papers that states one: measured beside claimed.

Each case measures an error for several numbers of rows, people or steps, and fits a line to the
logarithms.
"bound" is the same slope for what the plan proves beforehand. The data is simulated: x uniform in
the unit ball or the cube, y = x . theta* + 0.1 N(0, 1), so its risk is strongly convex, and slopes
may be steeper than those for the worst data. Of a theorem that is a lower bound the proven number
is taken, which needs no data.

    python benchmarks/theorem_rates.py [--quick]
"""

from __future__ import annotations

import argparse
import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from rich.progress import track

from riata import (
    Bounds,
    Budget,
    PrivateErm,
    PrivateSparseRegression,
    ProjectedRegression,
)
from riata.hard_instances import HardInstance
from riata.local.paper import PaperKernelRidge, PaperL1Regression, PaperSmoothGLM, PaperSparseMean
from riata.losses import Linear, Logistic, Squared
from riata.lower_bounds import lower_bound
from riata.problem import Problem
from riata.sets import L1Ball, L2Ball
from riata.solvers import NoisyGradient

from results import FOLDER, keep, show

P, SUPPORT, NOISE = 6, 3, 0.1

#: Plans cost nothing, so their bounds are taken where they are no longer trivial ...
PLANNED = (10**5, 3 * 10**5, 10**6)
#: ... and those of projections where there is memory for the theorem's dimensions.
PROJECTED = (2_000, 4_000, 8_000)
#: Under pure privacy exact draws in 256 dimensions have the smaller bound for fewer rows.
PURE = (16_000, 32_000, 64_000)
CUBE, BALL = Bounds(1.0, 1.0), Bounds(1.0, 1.0, norm="l2")


@dataclass(frozen=True)
class Data:
    """Rows of the cube or the unit ball, their targets, and the model behind them."""

    x: np.ndarray
    y: np.ndarray
    theta: np.ndarray

    @classmethod
    def drawn(cls, n: int, seed: int, *, ball: bool, p: int = P) -> Data:
        rng = np.random.default_rng([n, seed, ball])
        x = rng.uniform(-1, 1, (n, p))
        if ball:
            x = rng.standard_normal((n, p))
            x *= rng.random((n, 1)) ** (1 / p) / np.linalg.norm(x, axis=1, keepdims=True)
        theta = np.zeros(p)
        theta[:SUPPORT] = (0.5, -0.3, 0.2)
        y = np.clip(x @ theta + NOISE * rng.standard_normal(n), -1, 1)
        return cls(x, y, theta)

    @property
    def labels(self) -> np.ndarray:
        return np.where(self.y > 0, 1, -1)

    def risk(self, theta: np.ndarray) -> float:
        return float(np.mean((self.x @ theta - self.y) ** 2))

    def excess(self, theta: np.ndarray) -> float:
        """Over the least risk without a set, which lies inside the unit ball of the l1 norm."""
        best = np.linalg.lstsq(self.x, self.y, rcond=None)[0]
        return self.risk(theta) - self.risk(best)

    def logistic_excess(self, theta: np.ndarray) -> float:
        """The same for the logistic loss over the unit ball, by projected gradients."""
        best, ball = np.zeros(len(self.theta)), L2Ball(1.0)
        for _ in range(400):
            slopes = Logistic().slope(self.x @ best, self.labels)
            best = ball.project(best - 2 * self.x.T @ slopes / len(slopes) * len(best) ** 0.5)
        first, second = (
            np.mean(Logistic().value(self.x @ each, self.labels)) for each in (theta, best)
        )
        return float(max(first - second, 0.0))


Measure = Callable[[int, int], float]


@dataclass(frozen=True)
class Rate:
    """A theorem, its claimed exponent, and what measures it."""

    theorem: str
    what: str
    claimed: str
    sizes: tuple[int, ...]
    error: Measure
    bound: Callable[[int], float] | None = None
    why: str = ""
    planned: tuple[int, ...] = PLANNED

    def row(self, repeats: int) -> dict[str, object]:
        errors = [
            max(float(np.mean([self.error(n, seed) for seed in range(repeats)])), 1e-300)
            for n in self.sizes
        ]
        bounds = [self.bound(n) for n in self.planned] if self.bound else None
        return {
            "theorem": self.theorem,
            "what": self.what,
            "claimed": self.claimed,
            "measured": round(exponent(self.sizes, errors), 2),
            "bound": None if bounds is None else round(exponent(self.planned, bounds), 2),
            "why": self.why,
            "sizes": list(self.sizes),
            "errors": errors,
        }


def exponent(sizes: tuple[int, ...], errors: list[float]) -> float:
    return float(np.polyfit(np.log(sizes), np.log(errors), 1)[0])


def of_fit(
    model: Callable[[int], object], *, ball: bool, labels: bool = False, p: int = P
) -> Measure:
    """The excess risk of a model on all rows."""

    def error(n: int, seed: int) -> float:
        data = Data.drawn(n, seed, ball=ball, p=p)
        fitted = model(seed).fit(data.x, data.labels if labels else data.y)  # type: ignore[attr-defined]
        return data.logistic_excess(fitted.coef_) if labels else data.excess(fitted.coef_)

    return error


def distance(model: Callable[[int], object], *, ball: bool) -> Measure:
    """The squared distance from the model behind the data."""

    def error(n: int, seed: int) -> float:
        data = Data.drawn(n, seed, ball=ball)
        fitted = model(seed).fit(data.x, data.y)  # type: ignore[attr-defined]
        return float(np.sum((fitted.coef_ - data.theta) ** 2))

    return error


def planned(model: Callable[[int], object], p: int = P) -> Callable[[int], float]:
    return lambda n: model(0).plan(n, p).excess_risk  # type: ignore[attr-defined]


def erm(loss, constraint, delta, bounds, solver, epsilon=1.0, steps="auto"):
    return lambda seed: PrivateErm(
        loss, constraint, epsilon, delta, bounds=bounds, solver=solver, steps=steps,
        fit_intercept=False, random_state=seed,
    )  # fmt: skip


def averaged(n: int) -> float:
    """The bound of noisy gradients with the theorem's n^2 steps, averaged."""
    problem = Problem(Squared(), L2Ball(1.0), BALL, n, P)
    solver = NoisyGradient(n**2, clip=None, momentum=0.0, average=True)
    return solver.plan(problem, Budget(1.0, 1e-6)).excess_risk


def code(n: int, seed: int) -> float:
    """The lower bound of the hardest data of n rows, with the theorem's epsilon and delta."""
    epsilon, delta = 0.1, 0.01 / n**2
    return HardInstance.hardest(n, epsilon, delta, seed).lower_bound(epsilon, delta)


def vertex(n: int, seed: int, p: int = 64) -> float:
    """The excess risk of a linear loss on four rows e_j among rows of 0: the mean of 20 fits."""
    x, found = np.zeros((n, p)), []
    x[:4, seed % p] = 1.0
    for again in range(20):
        model = erm(Linear(), L1Ball(1.0), 1e-6, CUBE, "frank-wolfe")(20 * seed + again)
        found.append(model.fit(x, np.ones(n)).coef_[seed % p])
    return float(4 / n * (1 - np.mean(found)))


def below(n: int, p: int) -> float:
    """What no private model undercuts for a linear loss over the unit ball."""
    found = lower_bound(Problem(Linear(), L2Ball(1.0), BALL, n, p), Budget(1.0, 1e-9))
    assert found is not None
    return found.value


def moments(learner: Callable[[int], object], p: int = P, decay: float = 0.0) -> Measure:
    """A local learner on the moments of so many people, with variances of x that sum to 1."""
    variances = np.arange(1, p + 1) ** -decay
    variances /= variances.sum()
    theta = np.zeros(p)
    theta[:SUPPORT] = (0.5, -0.3, 0.2)

    def error(n: int, seed: int) -> float:
        second = np.diag(variances)
        fitted = learner(seed).fit_moments(n, second, second @ theta, 0.1)  # type: ignore[attr-defined]
        return float(variances @ (fitted.coef_ - theta) ** 2 / 2)

    return error


def kernel(n: int, seed: int) -> float:
    """How far predictions of kernel ridge regression are from those without noise."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(-1, 1, (400, 2)) / 2
    y = np.sin(3 * x[:, 0]) * 0.5
    components = int(min(max(2 * round(n**0.25 / 2), 4), 24))
    model = PaperKernelRidge(epsilon=8.0, delta=1e-6, n_components=components, random_state=seed)
    public = model.features(2)
    features = public.rows(x)
    second, cross = features.T @ features / len(x), features.T @ y / len(x)
    found, limit = (
        model.fit_moments(many, second, cross, float(y @ y / len(y)), n_features=2).coef_.copy()
        for many in (n, 10**17)
    )
    return float(np.mean((features @ (found - limit)) ** 2))


def sparse_mean(tolerance: float | str, groups: int | str) -> Measure:
    """The distance from a mean with 3 entries of 512 that are not 0, of projected rows."""

    def error(n: int, seed: int) -> float:
        rng = np.random.default_rng([n, seed])
        mean = np.zeros(512)
        mean[:SUPPORT] = (0.5, -0.3, 0.2)
        x = mean + rng.standard_normal((n, 512)) * 0.02
        model = PaperSparseMean(
            epsilon=4.0, delta=1e-6, tolerance=tolerance, groups=groups, random_state=seed
        )
        return float(np.linalg.norm(model.fit(x).mean_ - mean))

    return error


def cases(quick: bool) -> list[Rate]:
    rows = tuple(2**k for k in ((10, 12, 14) if quick else (10, 11, 12, 13, 14, 15, 16)))
    fewer = rows if quick else rows[:-2]
    few = tuple(2**k for k in (9, 11, 13)) if quick else tuple(2**k for k in range(9, 14))
    people = tuple(10**k for k in (8, 9, 10, 11, 12))
    crowd = tuple(round(10**k) for k in (6, 6.5, 7, 7.5, 8))
    steps = (4, 8, 16, 32, 64, 128)
    kind = "the risk is strongly convex"
    polytope = erm(Squared(), L1Ball(1.0), 1e-6, CUBE, "frank-wolfe")
    gaussian = erm(Squared(), L2Ball(1.0), 1e-6, BALL, "gaussian-frank-wolfe")
    gradient = erm(Squared(), L2Ball(1.0), 1e-6, BALL, "noisy-gradient")
    objective = erm(Squared(), L2Ball(1.0), 1e-6, BALL, "objective-perturbation")
    posterior = erm(Squared(), L2Ball(1.0), 0.0, BALL, "posterior-sampling")

    def threshold(seed):
        return PrivateSparseRegression(
            1.0, 1e-6, bounds=BALL, sparsity=SUPPORT, solver="hard-thresholding",
            fit_intercept=False, random_state=seed,
        )  # fmt: skip

    def peeled(seed):
        return PrivateSparseRegression(
            1.0, 1e-6, bounds=CUBE, sparsity=SUPPORT, solver="peeling", fit_intercept=False,
            random_state=seed,
        )  # fmt: skip

    def projected(delta):
        return lambda seed: ProjectedRegression(
            1.0, delta, bounds=BALL, radius=1.0, fit_intercept=False, random_state=seed
        )

    def converge(n, seed):
        data = Data.drawn(2_000, seed, ball=False)
        model = erm(Squared(), L1Ball(1.0), 0.0, CUBE, "auto", math.inf, n)(seed)
        return data.excess(model.fit(data.x, data.y).coef_)

    def glm(seed):
        return PaperSmoothGLM(epsilon=40.0, delta=1e-6, degree=1, random_state=seed)

    return [
        Rate("T 1.1, linear losses", "Frank-Wolfe in one step", "-1", rows, vertex,
             lambda n: erm(Linear(), L1Ball(1.0), 1e-6, CUBE, "frank-wolfe")(0)
             .plan(n, 64).excess_risk, "on the data of the lower bound"),
        Rate("T 1.2, 3.1", "lower bound for the LASSO", "-2/3",
             tuple(2**k for k in (20, 25, 30, 35, 40)), code, None,
             "steeper for fewer rows, where a code has few rows too"),
        Rate("K section 4, in n", "lower bound for linear losses", "-1", PLANNED,
             lambda n, seed: below(n, 64)),
        Rate("K section 4, in d", "lower bound for linear losses", "1/2", (16, 64, 256, 1024),
             lambda d, seed: below(10**6, d)),
        Rate("T 2.2", "Frank-Wolfe over T steps", "-1", steps, converge, None,
             "the minimum lies inside the set, and the risk is strongly convex"),
        Rate("T 2.5, W 16.2, 16.3", "Frank-Wolfe, l1 ball", "-2/3", rows,
             of_fit(polytope, ball=False), planned(polytope), kind),
        Rate("T 2.6", "Gaussian Frank-Wolfe, l2 ball", "-2/3", rows,
             of_fit(gaussian, ball=True), planned(gaussian), kind),
        Rate("W 16.5", "hard thresholding, distance^2", "-1 to -2", rows,
             distance(threshold, ball=True), planned(threshold),
             "the claim has two terms; few steps at small n"),
        Rate("W 16.6", "peeling, distance^2", "-1 to -2", rows, distance(peeled, ball=False),
             planned(peeled), "the claim has two terms"),
        Rate("W 16.9", "objective perturbation", "-1", rows,
             of_fit(objective, ball=True), planned(objective),
             f"{kind}; the bound counts the noise that hides rounding, which grows with n"),
        Rate("K 3.6", "noisy gradients", "-1", rows, of_fit(gradient, ball=True), averaged,
             f"{kind}; the bound is that of n^2 averaged steps, the data's of at most 512"),
        Rate("K 3.6 pure", "posterior samples", "-1", rows, of_fit(posterior, ball=True),
             planned(posterior), kind),
        Rate("K 3.11", "projected", "-1/2", fewer, of_fit(projected(1e-6), ball=True, p=64),
             planned(projected(1e-6), 20_000), kind, PROJECTED),
        Rate("K 3.11 pure", "projected", "-1/3", fewer, of_fit(projected(0.0), ball=True, p=64),
             planned(projected(0.0), 20_000),
             "64 columns are fitted, with more noise than signal until the last size", PURE),
        Rate("Z 2", "sparse mean as printed, distance", "-1/4", few, sparse_mean(100.0, "paper"),
             None, "0 is feasible for the printed tolerance, so the answer is 0 for every n"),
        Rate("Z 2, tolerance auto", "sparse mean, distance", "-1/4", few,
             sparse_mean("auto", 1), None, "one group; at the least n the answer is nearly 0"),
        Rate("Z 3", "l1 regression, balanced dimension", "-1/4", crowd,
             moments(lambda seed: PaperL1Regression(
                 epsilon=1.0, delta=1e-6, dimension="balanced", random_state=seed), 128, 1.0),
             None, "projected to 8 to 79 of 128 columns"),
        Rate("Z 3, no projection", "l1 regression", "-1/2", people,
             moments(lambda seed: PaperL1Regression(
                 epsilon=1.0, delta=1e-6, dimension=None, random_state=seed)),
             None, "Lemma 6 with m = d; the risk is strongly convex"),
        Rate("Z Corollary 2", "kernel ridge, distance from its limit", "-1/4", people, kernel, None,
             "squared distance of predictions, with 24 features at most"),
        Rate("Z 5, 6", "smooth losses, degree 1", "-1/2", (2**10, 2**13, 2**16),
             of_fit(glm, ball=True, labels=True), None,
             "epsilon 40, or millions of people would be needed; a bias stays"),
    ]  # fmt: skip


def plot(rows: list[dict[str, object]]) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 5), layout="constrained")
    axes = figure.subplots()
    for row in rows:
        sizes, errors = np.array(row["sizes"]), np.array(row["errors"])
        label = f"{row['theorem']}: {row['measured']:+.2f}, claimed {row['claimed']}"
        axes.plot(sizes / sizes[0], errors / errors[0], "o-", markersize=3, label=label)
    axes.set(xscale="log", yscale="log", xlabel="rows, people or steps, over the fewest",
             ylabel="error, over the first")  # fmt: skip
    axes.legend(frameon=False, fontsize=7)
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(FOLDER / "theorem_rates.svg")
    figure.savefig(FOLDER / "theorem_rates.png", dpi=150)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="fewer repeats and smaller data")
    quick = parser.parse_args().quick
    warnings.simplefilter("ignore")
    rows = [case.row(3 if quick else 10) for case in track(cases(quick), "theorems")]
    hidden = ("sizes", "errors")
    show("Exponents", [{k: v for k, v in row.items() if k not in hidden} for row in rows])
    keep("theorem_rates", {"rows": rows})
    plot(rows)


if __name__ == "__main__":
    main()
