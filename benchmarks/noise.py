"""The noise of one private step: the paper's composition against riata's, at the same guarantee.

Algorithm 2 adds Laplace noise to every vertex's score and spends
eps0 = epsilon / sqrt(8 T ln(1/delta)) a step. A selection with Laplace noise is eps0-private when
the noise has scale 2 * sensitivity / eps0. The table shows, in units of one score's sensitivity,
the scale that makes the whole run private by the paper's rule, by the theorem behind it solved
without slack, by the exact composition of eps0-private steps (Kairouz, Oh and Viswanath 2015), by
what is proven about Laplace maxima, and with riata's mechanism; and the least that is proven about
the scale printed in the paper.

    python benchmarks/noise.py
"""

from __future__ import annotations

import math

import numpy as np
from scipy.optimize import brentq
from scipy.special import expit
from scipy.stats import binom

from riata.mechanisms import ExponentialMechanism, ReportNoisyMax
from riata.privacy import Budget, calibrate, spent
from riata.privacy.events import compose

from results import keep, show


def strong_composition(eps0: float, steps: int, delta: float) -> float:
    """Dwork, Rothblum and Vadhan (2010): what the paper's proof invokes."""
    return math.sqrt(2 * steps * math.log(1 / delta)) * eps0 + steps * eps0 * math.expm1(eps0)


def exact_composition(eps0: float, steps: int, delta: float) -> float:
    """The best epsilon of `steps` eps0-private mechanisms: that of randomised response."""
    wins = np.arange(steps + 1)
    log_p = binom.logpmf(wins, steps, expit(eps0))
    loss = (2 * wins - steps) * eps0

    def excess(epsilon: float) -> float:
        return np.exp(log_p) @ -np.expm1(np.minimum(epsilon - loss, 0.0)) - delta

    return float(brentq(excess, 0.0, steps * eps0, xtol=1e-12))


def scale(eps0: float) -> float:
    """Noise of scale 2 * sensitivity / eps0 on each score is an eps0-private selection."""
    return 2 / eps0


def compare(epsilon: float, delta: float, steps: int) -> dict[str, float]:
    budget = Budget(epsilon, delta)
    rule = epsilon / math.sqrt(8 * steps * math.log(1 / delta))
    theorem = brentq(lambda e: strong_composition(e, steps, delta) - epsilon, 1e-9, 10 * epsilon)
    laplace = brentq(lambda e: exact_composition(e, steps, delta) - epsilon, rule, 4 * epsilon)
    ours = calibrate(lambda e: compose((ExponentialMechanism(e).event, steps)), budget)
    maximum = calibrate(lambda e: compose((ReportNoisyMax(e).event, steps)), budget)
    printed = (
        math.sqrt(8 * steps * math.log(1 / delta)) / epsilon / 2
    )  # sensitivity is 2 L1 ||C||/n
    return {
        "epsilon": epsilon,
        "delta": delta,
        "steps": steps,
        "paper's rule": scale(rule),
        "its theorem": scale(theorem),
        "Laplace, exact": scale(laplace),
        "Laplace, own event": scale(maximum),
        "riata": scale(ours),
        "rule / riata": ours / rule,
        "theorem / riata": ours / theorem,
        "Laplace / riata": ours / laplace,
        "epsilon of printed scale": spent(
            compose((ReportNoisyMax(2 / printed).event, steps)), delta
        ).epsilon,
    }


def main() -> None:
    rows = [compare(eps, 1e-6, steps) for eps in (0.1, 1.0, 3.0) for steps in (10, 40, 464)]
    show("Scale of the noise on a score, in sensitivities, for the same true guarantee", rows)
    keep("noise", {"rows": rows})


if __name__ == "__main__":
    main()
