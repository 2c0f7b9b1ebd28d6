"""Audit riata with JAX Privacy: `pip install riata jax-privacy`.

JAX Privacy's auditor knows nothing about riata. It gets scores of fits on two neighbours and
computes a lower bound on epsilon. It accepts a correct fit, and refutes a broken one whose noise is
a third of what it should be.
"""

from unittest.mock import patch

from jax_privacy.auditing import CanaryScoreAuditor

from riata import Bounds, PrivateLasso
from riata.audit import AttackScores, scores, search_pair
from riata.mechanisms import GaussianMechanism

DRAWS = 2_000
FALSE_ALARM = 1e-6

model = PrivateLasso(2.0, 1e-3, bounds=Bounds(x=1.0, y=1.0), solver="gaussian-frank-wolfe", steps=5)
pair = search_pair(model, n_rows=200, n_features=4, tries=20)


def verdict(found: AttackScores) -> str:
    judge = CanaryScoreAuditor(found.in_scores, found.out_scores)
    shown = judge.epsilon_clopper_pearson(FALSE_ALARM, found.delta, one_sided=False)
    refuted = "  THE CLAIM IS REFUTED" if shown > found.epsilon else ""
    return f"epsilon at least {shown:.3f}, claimed {found.epsilon:.3f}{refuted}"


if __name__ == "__main__":
    print(f"the pair realises {pair.share:.3f} of the claim")
    print("honest:", verdict(scores(model, pair.data, pair.neighbour, draws=DRAWS, seed=0)))
    honest = GaussianMechanism.scale
    with patch.object(GaussianMechanism, "scale", lambda self, query: honest(self, query) / 3):
        print(
            "a third of the noise:",
            verdict(scores(model, pair.data, pair.neighbour, draws=DRAWS, seed=0)),
        )
