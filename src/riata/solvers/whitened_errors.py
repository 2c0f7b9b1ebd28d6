"""What a whitened fit knows about its errors."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from riata.queries import GradientMoments, PreconditionedGradient
from riata.solvers.adaptive_budget import noise_std
from riata.solvers.constant_share import posterior
from riata.solvers.empirical_bayes import covariances, shortened_slopes, without
from riata.solvers.gradient_path import AveragedSteps, GradientRoot
from riata.solvers.measured_constant import likely_shift
from riata.solvers.whitened_defaults import (
    CUT,
    CUT_ALONG,
    LARGEST,
    LIGHT,
    MOST_MARGINS,
    NOISY_CELL,
    SEEN_FROM,
    SKEWED,
    farther_cut,
)
from riata.vectors import Vector

if TYPE_CHECKING:
    from riata.solvers.whitened_run import Run

#: The variance of residuals is at least this part of the squared scale of slopes.
LEAST_VARIANCE = 0.01


def gradient_errors(
    run: Run, path: AveragedSteps | GradientRoot, cut: float
) -> tuple[float, float]:
    """The errors of w: of the noise, and of sampling rows."""
    attenuation, square, loss = 1.0, 1.0, run.problem.loss
    sampled = run.scale / run.curvature / math.sqrt(run.problem.n_rows)
    if isinstance(path, GradientRoot):
        return path.noise, sampled
    if loss.classifies and loss.innermost.link == "logit":
        spread = math.sqrt(min(float(run.ratios @ np.square(run.w)), MOST_MARGINS))
        attenuation, square = shortened_slopes(loss, run.offset, spread, cut * run.scale)
    return path.noise(attenuation), sampled * math.sqrt(square) / attenuation


def measured_sampling(
    run: Run, query: PreconditionedGradient, cut: float
) -> tuple[np.ndarray, float]:
    """What the second moments of a gradient's summands, released, say about sampling errors.

    Errors of w are a sandwich whose outer parts follow from the gradients. Directions in which
    noise leaves less than the variance of residuals have that.

    Parameters
    ----------
    run : Run
    query : PreconditionedGradient
    cut : float
        Its clip, in units of the typical length of summands.

    Returns
    -------
    root : ndarray
        A root of the covariance of the gradient, over the curvature, and of the mean slope if there
        is a constant: of w and of the prediction at the mean row, if the Jacobian is the identity.
    farther : float
        How many times farther out gradients are to be clipped: 1 if no row surely counts much more
        than others.
    """
    constant, q, n = query.constant, run.whitening.size, run.problem.n_rows
    far = max(farther_cut(run.problem, run.strength) / cut, 1.0)
    asked = GradientMoments(
        query.problem, query.theta, far * query.limit, query.whitening, query.reach, constant,
        far * query.clip,
    )  # fmt: skip
    per_square = noise_std(run.plan["errors"], asked) / asked.clip**2
    least = CUT * run.scale * math.hypot(math.sqrt(run.trace), constant)
    clip = max(least, run.scale * math.sqrt(NOISY_CELL / per_square))
    clip = min(clip, asked.clip)
    moments, noise = run.release("errors", replace(asked, clip=clip))
    usual, noise_of_usual = float(np.median(np.diag(moments)[:q])), noise
    if constant:
        usual, noise_of_usual = float(moments[-1, -1]) / constant**2, noise / constant**2
        moments[-1], moments[:, -1] = moments[-1] / constant, moments[:, -1] / constant
    mean = float(np.trace(moments[:q, :q])) / q + 2 * noise / math.sqrt(q)
    light = clip >= SEEN_FROM / CUT * least and mean < LIGHT * usual
    least_value = max(usual + noise_of_usual, LEAST_VARIANCE * run.scale**2)
    values, vectors = np.linalg.eigh(moments)
    roots = np.sqrt(np.maximum(values, min(least_value, run.scale**2)) / n) / run.curvature
    farther = 1.0 if light else far
    # Along the model half as far, if noise is no sampling error.
    quiet = query.clip / noise_std(run.plan["along"], query) / math.sqrt(2 * n)
    run.cut_along = max(CUT_ALONG, min(farther * cut / 2, quiet))
    return (vectors * roots) @ vectors.T, farther


def steady_offset(run: Run) -> None:
    """Of a log link: near the best constant, if noise hides where the offset is.

    The mean of the targets is known better, and exceeds e^offset by what margins vary.
    """
    if run.offset_error is None or run.problem.loss.link != "log":
        return
    first, prior = run.constant.offset, math.hypot(run.constant_error, run.most / 2)
    move, run.offset_error = posterior(run.offset - first, run.offset_error, prior)
    run.offset = first + move


def mend_offset(run: Run, slope: float, noise: float) -> None:
    """Move the intercept by what its own error, and skewed residuals, leave room for."""
    assert run.offset_error is not None
    errors = (1 - run.kept) * run.constant_error, run.kept * run.offset_error
    if run.problem.unpenalized:  # both ends have the same offset
        errors = 0.0, run.offset_error
    prior = math.hypot(*errors, SKEWED * run.scale / run.curvature)
    run.shift, run.shift_error = likely_shift(run.problem.loss, slope, noise, run.curvature, prior)


def covariance_of(run: Run, theta: Vector, support: np.ndarray) -> np.ndarray:
    """Of coefficients and intercept: of w, of the mean row, and of how much is kept.

    To leave out columns projects w, and with it its errors, onto what is orthogonal to them. The
    variance of a sum over the k rows of a person is at most k times that of independent rows,
    however they depend on each other, and counts as this.
    """
    each = run.plan.budget.rows_of_a_person
    matrix, error = run.whitening.matrix, math.hypot(run.error, math.sqrt(each - 1) * run.sampled)
    error = min(error, LARGEST)
    maps = np.column_stack([matrix[:, support] / run.units[support], -run.whitening.centre])
    left = without(matrix, ~run.columns) if not run.columns.all() else np.eye(len(matrix))
    of_mean, of_part = np.zeros((2, len(support) + 1))
    of_mean[-1] = run.shift_error
    of_part[:-1] = run.kept_error * (theta.dense() - run.base.dense())[support]
    of_part[-1] = run.kept_error * (theta.offset - run.base.offset)
    of_w, none, unseen = left @ maps, np.zeros(2, dtype=bool), run.flat & run.unseen
    if isinstance(run.path, GradientRoot):
        of_noise, of_rows = _of_gradients(run, run.path, of_w)
        of_rows = math.sqrt(each) * of_rows
        flat = np.resize(np.append(unseen, False), len(of_rows))
        root = np.vstack([of_noise, of_rows, of_mean, of_part])
        flat = np.concatenate([flat, flat, none])
    else:
        sampled = run.scale / run.curvature / math.sqrt(run.problem.n_rows / each)
        of_mean[-1] = math.hypot(run.shift_error, sampled)
        root, flat = np.vstack([error * of_w, of_mean, of_part]), np.append(unseen, none)
    if not run.problem.fit_intercept:
        root[:, -1] = 0.0
    return covariances(root, flat)


def _of_gradients(run: Run, path: GradientRoot, of_w: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """What errors of the gradient add: of its noise, and of sampling rows.

    The noise of the intercept is counted with its shift, and not here.
    """
    everything = np.zeros((len(path.spread), of_w.shape[1]))
    everything[: len(of_w)] = of_w
    of_noise = min(path.noise, LARGEST) * path.spread.T @ everything
    everything[len(of_w) :, -1] = 1.0  # of the prediction at the mean row
    return of_noise, run.sampling @ path.spread.T @ everything
