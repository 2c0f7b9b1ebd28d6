"""How much of a budget the best constant gets, and what noise leaves of it.

With few rows and a small budget hardly more than the mean of the target can be learned. Then a
constant that is lost in noise costs more than all coefficients could gain.
"""

from __future__ import annotations

import math

from riata.solvers.empirical_bayes import signal_part

#: The noise of the best constant is at most 2 over this, in units of where slopes are clipped,
#: while it gets no more than `MOST` of the budget. From benchmarks/accuracy_harm.py and designs of
#: benchmarks/arena_designs.py: at 36 null targets cost less, and 2,000 x 100 loses .35 of R2 at
#: epsilon 0.1, because gradients have less.
STRENGTH, MOST = 20.0, 0.6


def constant_share(strength: float, least: float, *, pure: bool = False) -> float:
    """The share of the best constant: at least `least`, and more where the guarantee is strong.

    Parameters
    ----------
    strength : float
        The number of rows times the strength of the guarantee: one over the noise that the mean of
        numbers in [0, 1] would have with the whole budget.
    least : float
    pure : bool
        Whether a share is one of epsilon, to which noise is in inverse proportion, and not of rho.
    """
    share = STRENGTH / strength if strength > 0 else math.inf
    return min(max(share if pure else share**2, least), max(MOST, least))


def weight_of_share(share: float, others: float) -> float:
    """What stands for a share of everything beside others that add up to `others`."""
    return others * share / (1 - share)


def posterior(value: float, noise: float, prior: float) -> tuple[float, float]:
    """The mean and the standard deviation of a number around 0, given a noisy one."""
    part = signal_part(prior, noise)
    return value * part, noise * math.sqrt(part)
