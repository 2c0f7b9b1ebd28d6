"""Which headlines are clickbait: private logistic regression on hashed words.

Rows are counts of words, scaled to length 1, so their length is bounded and no entry is negative:
norm="l2", nonnegative=True. The headlines are synthetic. Words are hashed, because a vocabulary
that was taken from private texts would be a release of its own.
"""

from __future__ import annotations

import numpy as np
from sklearn.feature_extraction.text import HashingVectorizer

from riata import Bounds, PrivateLogisticRegression

BAIT = ["believe", "shocking", "secret", "trick", "weird", "amazing", "doctors", "hate"]
NEWS = ["minister", "budget", "court", "ruling", "report", "election", "treaty", "senate"]
BOTH = [f"word{k}" for k in range(500)]


def headlines(n: int, seed: int) -> tuple[list[str], np.ndarray]:
    rng = np.random.default_rng(seed)
    bait = rng.random(n) < 0.5
    texts = []
    for is_bait in bait:
        telling = rng.choice(BAIT if is_bait else NEWS, rng.integers(1, 4))
        texts.append(" ".join([*telling, *rng.choice(BOTH, 6)]))
    return texts, bait


def main() -> None:
    words = HashingVectorizer(n_features=2**14, alternate_sign=False, norm="l2")
    texts, y = headlines(16_000, seed=0)
    new_texts, new_y = headlines(4_000, seed=1)
    model = PrivateLogisticRegression(
        epsilon=1.0,
        delta=1e-6,
        bounds=Bounds(x=1.0, norm="l2", nonnegative=True),
        classes=[False, True],
    ).fit(words.transform(texts), y)
    print(model.privacy_)
    print(f"accuracy on new headlines: {model.score(words.transform(new_texts), new_y):.3f}")


if __name__ == "__main__":
    main()
