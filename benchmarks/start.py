"""What a new process pays before it has a model: CPU time and peak memory.

Each line is a process of its own, the best of three. Bytecode is kept, as for an installed package.
CPU time counts all threads, and leaves out the making of the data. What NumPy and scikit-learn cost
is the floor for the estimators. Linux counts at least the memory of the parent, about 17 MB.

    python benchmarks/start.py
"""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

from results import keep, show

REPEATS = 3

FIT = """
import time
import numpy as np
start = time.process_time()
x = np.random.default_rng(0).uniform(-1, 1, (10_000, 1_000))
y = np.clip(0.5 * x[:, 0] - 0.3 * x[:, 1], -1, 1)
making = time.process_time() - start
from riata import Bounds, PrivateLasso
PrivateLasso(epsilon=1, delta=1e-6, bounds=Bounds(x=1.0, y=1.0), solver="{solver}").fit(x, y)
"""

REPORT = """
import resource
used = resource.getrusage(resource.RUSAGE_SELF)
print(used.ru_utime + used.ru_stime - globals().get("making", 0.0), used.ru_maxrss / 1024)
"""

CASES = {
    "nothing": "pass",
    "import numpy": "import numpy",
    "import sklearn.linear_model": "import sklearn.linear_model",
    "import riata": "import riata",
    "from riata import Bounds, Budget": "from riata import Bounds, Budget",
    "from riata import PrivateLasso": "from riata import PrivateLasso",
    "fit of 10,000 x 1,000, auto": FIT.format(solver="auto"),
    "fit of 10,000 x 1,000, frank-wolfe": FIT.format(solver="frank-wolfe"),
}


def run(code: str) -> tuple[float, float]:
    """CPU seconds and megabytes of a new process."""
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    done = subprocess.run(
        [sys.executable, "-c", code + REPORT],
        env=environment, capture_output=True, text=True, check=True,
    )  # fmt: skip
    seconds, megabytes = map(float, done.stdout.split())
    return seconds, megabytes


def measure(name: str, code: str) -> dict[str, Any]:
    seconds, megabytes = zip(*(run(code) for _ in range(REPEATS)), strict=True)
    return {"process": name, "CPU, s": min(seconds), "peak memory, MB": min(megabytes)}


def main() -> None:
    rows = [measure(name, code) for name, code in CASES.items()]
    show("Cold starts", rows)
    keep("start", {"rows": rows})


if __name__ == "__main__":
    main()
