"""One case for each way in which an estimator of the central model can be fitted."""

from riata import (
    Bounds,
    HeavyTailedRegression,
    PrivateCoxRegression,
    PrivateErm,
    PrivateLasso,
    PrivateLinearSVC,
    PrivateLogisticRegression,
    PrivateOrdinalRegression,
    PrivateSparseRegression,
    ProjectedClassifier,
    ProjectedRegression,
)
from riata.losses import Huber, Squared
from riata.projections import GaussianProjection, StructuredProjection
from riata.sets import GroupL1Ball, L1Ball, L2Ball, Simplex, SparseBall
from riata.solvers import (
    GaussianFrankWolfe,
    NoisyGradient,
    PerturbedObjective,
    PrivateFrankWolfe,
    PrivateHardThresholding,
    PrivatePeeling,
    Projected,
)

N_ROWS, N_COLUMNS, STEPS = 60, 6, 4
BOUNDS = Bounds(1.0, 1.0)
LENGTH = Bounds(1.0, 1.0, norm="l2")
PHI = GaussianProjection(4, N_COLUMNS, seed=1)
WIDE = GaussianProjection(N_COLUMNS, 9, seed=2).matrix()  # the rows stand for rows of 9 columns

ESTIMATORS = {
    "lasso": lambda **common: PrivateLasso(1.0, 1e-6, steps=STEPS, **common),
    "lasso, pure": lambda **common: PrivateLasso(1.0, 0.0, steps=STEPS, **common),
    "lasso, gaussian": lambda **common: PrivateLasso(
        1.0, 1e-6, solver=GaussianFrankWolfe(STEPS), **common
    ),
    "lasso, greedy": lambda **common: PrivateLasso(1.0, 1e-6, solver="greedy", **common),
    "lasso, greedy, pure": lambda **common: PrivateLasso(1.0, 0.0, solver="greedy", **common),
    "lasso, refitted": lambda **common: PrivateLasso(
        1.0, 1e-6, solver="refitted-frank-wolfe", **common
    ),
    "lasso, greedy, unpenalized": lambda **common: PrivateLasso(
        1.0, 1e-6, solver="greedy", unpenalized=[0, 2], **common
    ),
    "lasso, unpenalized": lambda **common: PrivateLasso(
        1.0, 1e-6, steps=STEPS, solver="whitened-gradient", unpenalized=[0, 2], **common
    ),
    "lasso, frank-wolfe": lambda **common: PrivateLasso(
        1.0, 1e-6, steps=STEPS, solver="frank-wolfe", **common
    ),
    "lasso, frank-wolfe, pure": lambda **common: PrivateLasso(
        1.0, 0.0, steps=STEPS, solver="frank-wolfe", **common
    ),
    "lasso, own delta and steps": lambda **common: PrivateLasso(1.0, **common),
    "lasso, laplace noise": lambda **common: PrivateLasso(
        1.0, 1e-6, solver=PrivateFrankWolfe(STEPS, "laplace"), fit_intercept=False, **common
    ),
    "any loss over any set": lambda **common: PrivateErm(
        Huber(0.5), GroupL1Ball(3, 1.0), 1.0, 1e-6, steps=STEPS, **common
    ),
    "simplex": lambda **common: PrivateErm(
        Squared(), Simplex(1.0), 1.0, 1e-6, steps=STEPS, **common
    ),
    "logistic": lambda **common: PrivateLogisticRegression(
        1.0, 1e-6, classes=["no", "yes"], steps=STEPS, **common
    ),
    "logistic, three classes": lambda **common: PrivateLogisticRegression(
        1.0, 1e-6, classes=["a", "b", "c"], steps=STEPS, **common
    ),
    "logistic, rows of bounded length": lambda bounds, **common: PrivateLogisticRegression(
        1.0, bounds=LENGTH, classes=["no", "yes"], **common
    ),
    "logistic, objective perturbation": lambda bounds, **common: PrivateLogisticRegression(
        1.0, 0.0, bounds=LENGTH, classes=["no", "yes"], penalty="l2", radius=1.0,
        solver="objective-perturbation", **common,
    ),
    "ordered, three classes": lambda **common: PrivateOrdinalRegression(
        1.0, 1e-6, classes=["a", "b", "c"], steps=STEPS, **common
    ),
    "durations": lambda **common: PrivateCoxRegression(1.0, 1e-6, steps=STEPS, bands=2, **common),
    "durations, unpenalized": lambda **common: PrivateCoxRegression(
        1.0, 1e-6, steps=STEPS, bands=2, unpenalized=[1], **common
    ),
    "support vectors": lambda **common: PrivateLinearSVC(
        1.0, 1e-6, classes=["no", "yes"], steps=STEPS, **common
    ),
    "support vectors, three classes": lambda bounds, **common: PrivateLinearSVC(
        1.0, 1e-6, bounds=LENGTH, classes=["a", "b", "c"], steps=STEPS, **common
    ),
    "noisy gradient": lambda bounds, **common: PrivateErm(
        Huber(0.5), L2Ball(1.0), 1.0, 1e-6, bounds=LENGTH, solver=NoisyGradient(STEPS), **common
    ),
    "noisy gradient, sampled": lambda bounds, **common: PrivateErm(
        Squared(), L1Ball(1.0), 1.0, 1e-6, bounds=LENGTH,
        solver=NoisyGradient(STEPS, clip=0.5, sampling=0.3), **common,
    ),
    "objective perturbation": lambda bounds, **common: PrivateErm(
        Squared(), L1Ball(1.0), 1.0, 1e-6, bounds=LENGTH, solver=PerturbedObjective(1, 9.0),
        **common,
    ),
    "objective perturbation, pure": lambda bounds, **common: PrivateErm(
        Squared(), Simplex(1.0), 1.0, 0.0, bounds=LENGTH, solver="objective-perturbation", **common
    ),
    "posterior sampling": lambda bounds, **common: PrivateErm(
        Squared(), L2Ball(1.0), 1.0, 0.0, bounds=LENGTH, solver="posterior-sampling", **common
    ),
    "sparse": lambda **common: PrivateSparseRegression(
        1.0, 1e-6, sparsity=2, steps=STEPS, **common
    ),
    "sparse, pure": lambda **common: PrivateSparseRegression(
        1.0, 0.0, sparsity=2, fit_intercept=False, **common
    ),
    "sparse, split": lambda **common: PrivateSparseRegression(
        1.0, 1e-6, sparsity=2, solver=PrivatePeeling(STEPS, split=True), **common
    ),
    "sparse, rows of bounded length": lambda bounds, **common: PrivateSparseRegression(
        1.0, bounds=LENGTH, sparsity=3, **common
    ),
    "sparse, hard thresholding, unpenalized": lambda **common: PrivateSparseRegression(
        1.0, 1e-6, sparsity=2, solver=PrivateHardThresholding(STEPS), unpenalized=[1], **common
    ),
    "sparse, straight loss": lambda **common: PrivateErm(
        Huber(0.5), SparseBall(2), 1.0, 1e-6, solver=PrivateHardThresholding(STEPS), **common
    ),
    "heavy tails": lambda bounds, **common: HeavyTailedRegression(1.0, sparsity=2, **common),
    "heavy tails, split and cut": lambda bounds, **common: HeavyTailedRegression(
        1.0, 0.0, sparsity=2, truncation=1.0, solver=PrivatePeeling(STEPS, split=True), **common
    ),
    "projected": lambda bounds, **common: ProjectedRegression(
        1.0, 1e-6, bounds=LENGTH, projection=PHI, steps=STEPS, **common
    ),
    "projected, entry by entry": lambda **common: ProjectedRegression(
        1.0, 1e-6, dimension=3, projection="structured", clip=0.5, steps=STEPS, **common
    ),
    "projected, pure": lambda bounds, **common: ProjectedRegression(
        1.0, 0.0, bounds=LENGTH, dimension=2, projection="sparse-sign", **common
    ),
    "projected, compressed": lambda bounds, **common: ProjectedRegression(
        1.0, 1e-6, bounds=LENGTH, projection=WIDE, compressed=True, steps=STEPS, **common
    ),
    "projected lasso": lambda **common: PrivateLasso(
        1.0, 1e-6, solver=Projected(STEPS, projection=StructuredProjection(2, N_COLUMNS)), **common
    ),
    "projected labels": lambda bounds, **common: ProjectedClassifier(
        1.0, 1e-6, bounds=LENGTH, classes=["no", "yes"], dimension=3, steps=STEPS, **common
    ),
    "projected labels, compressed, three classes": lambda bounds, **common: ProjectedClassifier(
        1.0, 1e-6, bounds=LENGTH, classes=["a", "b", "c"], projection=WIDE, compressed=True,
        steps=STEPS, **common,
    ),
}  # fmt: skip


def labels_for(name):
    kinds = ("logistic", "ordered", "support vectors", "projected labels")
    if not name.startswith(kinds):
        return None
    return ["a", "b", "c"] if "three classes" in name else ["no", "yes"]
