"""Answer the survey for 50,000 simulated people, each on a device of their own.

    riata collect serve examples/survey/sleep.toml --people 50000 --reports-per-address 0
                                                # in another terminal; all come from one address
    python examples/survey/simulate.py
    riata collect learn examples/survey/sleep.toml

Every person answers at random around the truth below; what is sent is eight bytes for each.
"""

from pathlib import Path
from urllib.request import Request, urlopen

import numpy as np
from rich.progress import track

from riata.local import Client, Task

SERVICE = "http://127.0.0.1:8080"
PEOPLE, TOGETHER = 50_000, 1000

task = Task.load(Path(__file__).with_name("sleep.toml"))
rng = np.random.default_rng(0)

#: What one unit more of each answer does to the hours of sleep.
TRUTH = {
    "age": -0.01, "coffee": -0.12, "screen": -0.15, "exercise": 0.05, "stress": -0.12,
    "smokes": -0.4, "children": -0.9, "nights": -1.2, "medicine": -0.5, "pain": -0.8,
}  # fmt: skip
SHARES = {"smokes": 0.2, "children": 0.2, "nights": 0.15, "medicine": 0.15, "pain": 0.2}


def person() -> dict[str, object]:
    answers: dict[str, object] = {
        "age": int(np.clip(rng.normal(45, 16), 18, 90)),
        "coffee": int(min(rng.poisson(2), 8)),
        "screen": float(np.clip(rng.normal(2.2, 1.2), 0, 6)),
        "exercise": float(min(rng.exponential(3), 15)),
        "stress": int(rng.integers(0, 11)),
        "town": str(rng.choice(["city", "town", "country"])),
    }
    answers |= {name: bool(rng.random() < share) for name, share in SHARES.items()}
    middle = {"age": 45, "coffee": 2, "screen": 2, "exercise": 3, "stress": 5}
    hours = 7.6 + sum(TRUTH[name] * (float(answers[name]) - middle.get(name, 0)) for name in TRUTH)
    return answers | {"hours": hours + rng.normal(0, 0.6)}


def send(reports: list[bytes]) -> None:
    request = Request(
        f"{SERVICE}/tasks/{task.id}/reports",
        b"".join(reports),
        {"Content-Type": "application/octet-stream"},
    )
    with urlopen(request) as answer:
        assert answer.status == 201


for _ in track(range(PEOPLE // TOGETHER), "People answer"):
    send([Client(task).report(person()) for _ in range(TOGETHER)])
