"""Write the test vectors that every implementation of the local model's device must reproduce.

    python tools/local_vectors.py > tests/data/local_vectors.json

They never change: a task's reports mean what this generator says.
"""

from __future__ import annotations

import hashlib
import json

import numpy as np

from riata.local.channel import channel
from riata.local.encoding import Feature
from riata.local.generator import Generator
from riata.local.questions import _multiply_high, lift
from riata.local.sketch import Sketch
from riata.local.task_fields import TaskFields

#: What people may type. Only decimal numbers in ASCII, with blanks around them, are numbers.
TEXTS = [
    "", "0", "-0", "7", "+1", "1.", ".5", "+.5", "-.5e1", "1e3", "1E-2", "1e+2", "1e999", "-1e999",
    "007", "12.75", " 1 ", "\t1\n", "\f1\v", "\u00a01", "1\u2003", "\ufeff1", "\x1c1", "1 2", "--1",
    "+-1", "1_000", "_1", "1__0", "1,5", "1.5.2", "1e", "e1", ".", "+", "1e1.5", "1f", "0x10",
    "0b1", "1n", "inf", "-inf", "Infinity", "-Infinity", "nan", "NaN",
    "५", "१२", "\uff11\uff12", "٨", "\u06f1", "²", "½", "\u22121",
    "yes", "Yes", " NO ", "true", "FALSE", "\u00a0yes", "yes\u3000", "y", "1", "constructor",
]  # fmt: skip
QUESTIONS = [
    {"name": "number", "kind": "number", "bounds": [-100, 5000], "center": 12.5, "weight": 0.5},
    {"name": "yes-no", "kind": "yes-no"},
]
SEEDS = [0, 1, 2, 255, 2**32, 2**63 - 1, 2**63, 2**64 - 1]


def vectors() -> dict[str, object]:
    key = hashlib.sha256(b"riata test vectors").digest()
    generator, seeds = Generator(key), np.array(SEEDS, dtype=np.uint64)
    sketch = Sketch(generator, 5000, 512)
    return {
        "key": key.hex(),
        "seeds": [f"{seed:016x}" for seed in SEEDS],
        "words": generator.words(seeds, 0, 2).tolist(),
        "normals": generator.normals(seeds, 9).tolist(),
        "far_normals": generator.normals(seeds, 3, 1 << 42).tolist(),
        "signs": sketch._signs[:64].astype(int).tolist(),
        "places": sketch.places(seeds)[:, :4].tolist(),
        "scaled": {
            f"{count:016x}": [
                f"{int(s):016x}" for s in _multiply_high(seeds * np.uint64(977), count)
            ]
            for count in (3, 2**33 + 1, 2**63, 3 * 2**62 + 12345, 2**64 - 1)
        },
        "decisions": [
            decision(generator, degree, epsilon) for degree in (1, 2) for epsilon in (1, 4)
        ],
        "answers": [
            {
                "feature": table,
                "texts": TEXTS,
                "encoded": [float(Feature.read(TaskFields(table)).encode(one)[0]) for one in TEXTS],
            }
            for table in QUESTIONS
        ],
    }


def decision(generator: Generator, degree: int, epsilon: float) -> dict[str, object]:
    used = channel(degree, 5, float(epsilon))
    row = np.array([[0.5, -0.25, 0.125, 0.0625]])
    seeds = np.arange(24, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    coins = seeds[::-1] ^ np.uint64(0x5851F42D4C957F2D)
    direction = lift(row)[0]
    products = generator.normals(seeds, 5) @ direction
    return {
        "degree": degree,
        "epsilon": epsilon,
        "threshold": used.threshold,
        "coin": f"{used.coin:016x}",
        "row": row[0].tolist(),
        "direction": direction.tolist(),
        "seeds": [f"{int(seed):016x}" for seed in seeds],
        "coins": [f"{int(coin):016x}" for coin in coins],
        "products": products.tolist(),
        "accepted": used.accepts(products, coins).tolist(),
    }


if __name__ == "__main__":
    print(json.dumps(vectors(), indent=1))
