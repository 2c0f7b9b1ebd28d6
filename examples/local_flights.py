"""Learn arrival delays from 300,000 devices in the local model, at epsilon 1.

Each flight stands for one person. Its row becomes one report of eight bytes, and the model is
learned from the reports alone. It is compared with least squares on all rows, without privacy.
In a real collection each device would run `Client(task).report(row)`; here `randomize` runs the
same code for all of them at once.

    python examples/local_flights.py
"""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure

from riata.datasets import load_flights
from riata.local import Aggregator, Task
from riata.local.randomize import randomize
from riata.mechanisms.noise import Noise

MINUTES = 180.0  # the unit of the packaged delays
DEVICES = 300_000
CHECKPOINTS = [3_000, 10_000, 30_000, 100_000, 300_000]
#: Public knowledge: the eight carriers with most flights from New York.
CARRIERS = ["UA", "B6", "EV", "DL", "AA", "MQ", "US", "9E"]

# All of this was chosen from what the columns mean, not from their values. The departure delay is
# believed to matter most, so categories get the weight 0.2; a flight that leaves on time is the
# usual case, so the centre is 0.
TASK = Task.from_table(
    {
        "kind": "linear",
        "title": "arrival delays",
        "epsilon": 1.0,
        "features": [
            {"name": "dep_delay", "kind": "number", "bounds": [-30, 120], "center": 0},
            {
                "name": "origin",
                "kind": "choice",
                "choices": ["EWR", "JFK", "LGA"],
                "weight": 0.2,
            },
            {"name": "carrier", "kind": "choice", "choices": CARRIERS, "weight": 0.2},
        ],
        "target": {"name": "arr_delay", "kind": "number", "bounds": [-60, 120], "center": 0},
    }
)


def encoded_flights() -> tuple[np.ndarray, np.ndarray]:
    """Rows and targets as the devices would encode them."""
    flights = load_flights()
    columns = {name: j for j, name in enumerate(flights.feature_names)}
    parts = []
    for feature in TASK.encoding.features:
        block = flights.x[:, [columns[name] for name in feature.names]].toarray()
        if feature.kind == "choice":
            parts.append(feature.weight * block)
        else:
            parts.append(feature.scale(MINUTES * block))
    rows = np.hstack(parts) / TASK.encoding.length
    assert TASK.target is not None
    return rows, TASK.target.scale(MINUTES * flights.y)


def r2(y: np.ndarray, predicted: np.ndarray) -> float:
    return float(1 - np.mean((y - predicted) ** 2) / np.var(y))


def main() -> None:
    print(TASK.plan(DEVICES, explained=0.6, spread=0.3, length=0.4, decay=2.0))
    rows, targets = encoded_flights()
    order = np.random.default_rng(0).permutation(len(rows))
    devices, held = order[:DEVICES], order[DEVICES:]

    reports = randomize(TASK, rows[devices], targets[devices], Noise())
    server = Aggregator(TASK, expected=DEVICES)
    scores, done = [], 0
    for n in CHECKPOINTS:
        server.add(reports[done:n])
        done = n
        model = server.solve()
        scores.append(r2(targets[held], model.decision(rows[held])))
        said = "" if model.signal else ", no signal"
        print(f"{n:>7,} reports: R2 {scores[-1]:.3f}{said}")
    print(model)
    print(server.honesty())

    table = np.column_stack([rows, np.ones(len(rows))])
    exact, *_ = np.linalg.lstsq(table[devices], targets[devices])
    ceiling = r2(targets[held], table[held] @ exact)
    print(f"least squares on all rows, without privacy: R2 {ceiling:.3f}")

    figure = Figure(figsize=(6, 3.6), layout="constrained")
    axes = figure.subplots()
    axes.plot(CHECKPOINTS, scores, "o-", color="#b45309", label="from reports, epsilon 1")
    axes.axhline(ceiling, linestyle="--", color="#64748b", label="least squares, without privacy")
    axes.set(xscale="log", xlabel="devices", ylabel="R2 on held-out flights")
    axes.legend(frameon=False)
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig("local_flights.png", dpi=150)


if __name__ == "__main__":
    main()
