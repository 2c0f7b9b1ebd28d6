"""No two columns of a schema have one name, as columns of a file or encoded."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING

from riata.data.schema.features import MOST_COLUMNS, Feature
from riata.data.schema.interaction import Interaction
from riata.data.schema.named_features import NamedFeatures
from riata.data.schema.numeric_block import NumericBlock
from riata.errors import SchemaError
from riata.files.limit import ReadLimit
from riata.wording import shown

if TYPE_CHECKING:
    from riata.data.schema import Schema

#: Names of encoded columns that are made as a list.
MOST_NAMES = 2**24
#: What a name takes besides its characters, and a character at most.
_NAME, _CHARACTER = 128, 4
#: Characters that a name has besides those of its feature and its label: numbers of bins, mostly.
_LONGEST_END = 64
_BUCKET = re.compile(r"(.*)\[(0|[1-9][0-9]{0,9})\]", re.DOTALL)


def check_names(schema: Schema, limit: ReadLimit) -> None:
    """Raise if a column stands twice, or if two encoded columns would have one name."""
    named = [*schema.columns, *schema.ignore]
    named += [schema.person] if schema.person else []
    named += [each for each in schema.target.columns if each] if schema.target is not None else []
    name, times = Counter(named).most_common(1)[0] if named else ("", 0)
    if times > 1:
        raise SchemaError(
            f"The column {shown(name)} stands twice in the schema: a column is one feature, the "
            "target, the person or ignored. Remove one of them."
        )
    if schema.n_features > MOST_COLUMNS:
        raise SchemaError(
            f"The schema has {schema.n_features} encoded columns, and {MOST_COLUMNS} is the most. "
            "Use fewer buckets."
        )
    twice = None if isinstance(schema.features, NumericBlock) else _repeated(schema.features, limit)
    if twice is not None:
        raise SchemaError(
            f"Two encoded columns would be called {shown(twice)}. Rename a column or a choice."
        )


def _repeated(features: NamedFeatures, limit: ReadLimit) -> str | None:
    """A name that two encoded columns have. Numbered buckets are not listed: they may be many."""
    buckets = {feature.name: feature.n_columns for feature in features if feature.hashed}
    seen: set[str] = set()
    for feature in features:
        if feature.hashed:
            continue
        limit.take(
            _NAME * feature.n_columns + _CHARACTER * _characters(feature),
            f"The names of the {feature.n_columns} columns of one feature",
        )
        for name in feature.names:
            bucket = _BUCKET.fullmatch(name)
            if name in seen or (bucket and int(bucket[2]) < buckets.get(bucket[1], 0)):
                return name
            seen.add(name)
    return None


def _characters(feature: Feature) -> int:
    """About how many characters the names of a feature's columns have together, at most."""
    if isinstance(feature, Interaction):
        one, other = feature.first, feature.second
        return other.n_columns * _characters(one) + one.n_columns * _characters(other)
    longest = len(feature.name) + _LONGEST_END
    return longest * feature.n_columns + sum(map(len, feature.labels))
