"""The learners of Zheng, Mou and Wang (2017), corrected: a reference to measure others against.

*Collect at once, use effectively: making non-interactive locally private learning possible.* Each
learner has the two halves of the paper. `report` is what one device sends; `learn` is what the
server does with all reports; `fit` simulates both.
"""

from riata.local.paper.kernel_ridge import PaperKernelRidge
from riata.local.paper.moments import Moments, Reports, simulated_moments
from riata.local.paper.private_vector import PrivateVector
from riata.local.paper.regression import PaperL1Regression
from riata.local.paper.smooth_glm import PaperSmoothGLM, Synopses
from riata.local.paper.sparse_mean import PaperSparseMean

__all__ = [
    "Moments",
    "PaperKernelRidge",
    "PaperL1Regression",
    "PaperSmoothGLM",
    "PaperSparseMean",
    "PrivateVector",
    "Reports",
    "Synopses",
    "simulated_moments",
]
