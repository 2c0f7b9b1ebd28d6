"""What follows from a schema, in words."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

from riata.data.schema.automatic import GAINED, KNOTS, MOST_ENCODED, with_numbers
from riata.data.schema.named_features import NamedFeatures
from riata.data.schema.number import Number
from riata.wording import number_of

if TYPE_CHECKING:
    from riata.data.schema import Schema


_PLURAL = {"hash": "hashes", "yes-no": "yes-no columns"}


def derived_facts(schema: Schema) -> list[tuple[str, str]]:
    """What a fit knows from the schema alone, line by line: a name and what it is."""
    bounds, lines = schema.bounds, []
    if isinstance(schema.features, NamedFeatures):
        kinds = Counter(feature.kind for feature in schema.features)
        counted = ", ".join(number_of(n, kind, _PLURAL.get(kind)) for kind, n in kinds.items())
        lines.append(("columns", f"{counted}: {schema.n_features:,} encoded columns"))
        lines += _curves(schema.features)
    else:
        lines.append(("columns", f"{schema.n_features:,} numeric columns"))
    if schema.unpenalized:
        listed = ", ".join(schema.unpenalized)
        lines.append(("always", f"{listed}: in every model, and nothing pulls them to 0"))
    if bounds.max_length is None:
        lines.append(("rows", "bounded entry by entry: most entries may differ from 0"))
    else:
        entries = math.sqrt(schema.n_features)  # each entry is at most 1
        lines.append(
            (
                "rows",
                f"no longer than {bounds.max_length:.3g}, about {schema.likely_entries:,} of "
                f"{schema.n_features:,} entries are not 0; entry by entry {entries:.3g} would be "
                f"possible, and sums of rows need {_times(entries / bounds.max_length)} times less "
                "noise than that",
            )
        )
    if bounds.nonnegative:
        lines.append(
            (
                "signs",
                "no entry is below 0, so that two rows are at most a right angle apart: less noise "
                "in objective-perturbation, and a reason for class-sums",
            )
        )
    return lines


def _times(factor: float) -> str:
    """To two digits, and never as a power of ten."""
    return f"{factor:,.0f}" if factor >= 100 else f"{factor:.2g}"


def _curves(features: NamedFeatures) -> list[tuple[str, str]]:
    numbers = [each for each in features if isinstance(each, Number)]
    if not numbers:
        return []
    curved = Counter(len(each.knots or ()) for each in numbers if each.knots)
    binned = Counter(len(each.bins) + 1 for each in numbers if each.bins)
    lines = sum(1 for each in numbers if each.line)
    said = [f"{times} with {k} knots" for k, times in curved.items()]
    said += [f"{times} in {k} bins" for k, times in binned.items()]
    said += [f"{number_of(lines, 'straight line')}"] if lines else []
    return [("numbers", ", ".join(said) + _worth(features, numbers))]


def _worth(features: NamedFeatures, numbers: list[Number]) -> str:
    """What curves cost in columns, and what they brought on public tables."""
    straight = with_numbers(features, lambda each: replace(each, knots=(), bins=())).count
    if features.count > straight:
        return (
            f": {features.count:,} columns in all where straight lines take {straight:,}. On "
            f"public tables the curves of the default were worth {GAINED}"
        )
    if not any(each.automatic for each in numbers):
        return ""
    least, knots = KNOTS[-1]
    if features.count + sum(each.automatic for each in numbers) * (knots - 1) > MOST_ENCODED:
        return f". Curves would need more than {MOST_ENCODED} encoded columns"
    return (
        f". From {least:,.0f} rows times epsilon on, a fit takes curves if there are rows enough "
        f"for their columns; they were worth {GAINED} on public tables"
    )
