"""How well counts fit probabilities: the oracle of all tests of discrete distributions."""

import numpy as np
from scipy import stats


def pvalue(counts, probabilities):
    """Of a chi-square test, outcomes that are too rare for it taken together."""
    counts, chances = np.asarray(counts), np.asarray(probabilities)
    expected = counts.sum() * chances
    common = expected >= 25
    observed = np.append(counts[common], counts[~common].sum())
    expected = np.append(expected[common], expected[~common].sum())
    rare = 1.0
    if expected[-1] < 25:  # too rare even together: the exact binomial tail
        chance = min(1.0, float(chances[~common].sum()))
        rare = stats.binom.sf(observed[-1] - 1, counts.sum(), chance)
        observed, expected = observed[:-1], expected[:-1]
        expected = expected * observed.sum() / expected.sum()
    both = stats.chisquare(observed, expected).pvalue if len(observed) > 1 else 1.0
    return 2 * min(rare, both)
