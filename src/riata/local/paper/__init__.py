"""The learners of Zheng, Mou and Wang (2017), corrected: a reference to measure others against.

*Collect at once, use effectively: making non-interactive locally private learning possible.* Each
learner has the two halves of the paper. `report` is what one device sends; `learn` is what the
server does with all reports; `fit` simulates both.
"""

from riata.local.paper.chebyshev import (
    GeneralisedLinear,
    degree_by_lemma_8,
    log_people_by_theorem_6,
)
from riata.local.paper.error_bounds import feature_distortion, kernel_distance
from riata.local.paper.kernel_ridge import PaperKernelRidge
from riata.local.paper.moments import Moments, Reports, simulated_moments
from riata.local.paper.private_vector import PrivateVector
from riata.local.paper.regression import PaperL1Regression
from riata.local.paper.sigm import sigm_risk
from riata.local.paper.smooth_glm import PaperSmoothGLM, SampleSize, Synopses
from riata.local.paper.smooth_norm import smooth_norm, smooth_norm_by_proposition_1
from riata.local.paper.sparse_mean import PaperSparseMean

__all__ = [
    "GeneralisedLinear",
    "Moments",
    "PaperKernelRidge",
    "PaperL1Regression",
    "PaperSmoothGLM",
    "PaperSparseMean",
    "PrivateVector",
    "Reports",
    "SampleSize",
    "Synopses",
    "degree_by_lemma_8",
    "feature_distortion",
    "kernel_distance",
    "log_people_by_theorem_6",
    "sigm_risk",
    "simulated_moments",
    "smooth_norm",
    "smooth_norm_by_proposition_1",
]
