"""How many knots numbers get where nobody says: a rule from public facts.

A curve of k knots costs k columns, and noise grows with columns. The steps were drawn on public
tables of numbers and categories (benchmarks/schema_knots.py): at these products of rows and epsilon
curves were as good as lines or better in all of them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from riata.data.schema.features import Feature
from riata.data.schema.interaction import Interaction
from riata.data.schema.named_features import NamedFeatures
from riata.data.schema.number import Number

#: From so many rows times epsilon, so many knots.
KNOTS = ((40_000.0, 13), (10_000.0, 9), (5_000.0, 5))

#: What they were worth there, from the least to the most: two regressions, two classifications, and
#: epsilon .3, 1 and 3, with as many knots as above and against straight lines (two splits).
GAINED = "0.008 to 0.085 of R2, and 0.002 to 0.013 of AUC"

#: With knots there are at most so many encoded columns, and this part of rows times epsilon, for
#: each model that is fitted: among more of them few can be measured.
MOST_ENCODED, COLUMNS_A_ROW = 512, 1 / 50


def with_knots(features: NamedFeatures, amount: float, models: int = 1) -> NamedFeatures:
    """The features with knots for each automatic number; the same ones if the rule says lines.

    Parameters
    ----------
    features : NamedFeatures
    amount : float
        Rows times epsilon, or people times epsilon.
    models : int, default=1
        How many models are fitted: one for each of three classes or more.
    """
    if not any(isinstance(each, Number) and each.automatic for each in features):
        return features
    most = min(MOST_ENCODED, amount * COLUMNS_A_ROW / models)
    for least, number in KNOTS:
        if amount >= least:
            found = with_numbers(features, partial(_curved, knots=number))
            if found.count <= most:
                return found
    return features


def _curved(number: Number, knots: int) -> Number:
    return replace(number, knots=number.points(knots)) if number.automatic else number


def with_numbers(features: NamedFeatures, change: Callable[[Number], Number]) -> NamedFeatures:
    """The features with other numbers in their place, in interactions too."""

    def changed(feature: Feature) -> Feature:
        if isinstance(feature, Interaction):
            return replace(feature, first=changed(feature.first), second=changed(feature.second))
        return change(feature) if isinstance(feature, Number) else feature

    return NamedFeatures(tuple(map(changed, features)))


def declares(declared: NamedFeatures, made: NamedFeatures) -> bool:
    """Whether features are what others become when automatic numbers get their knots."""
    numbers = {each.name: each for each in made if isinstance(each, Number)}

    def as_made(number: Number) -> Number:
        other = numbers.get(number.name)
        if other is None or not number.automatic:
            return number
        return replace(number, knots=other.knots, bins=other.bins)

    return with_numbers(declared, as_made) == made
