"""How much accuracy does privacy cost? R2 on held-out flights against epsilon, with a plot.

The flights are public, so fitting them many times harms nobody. On sensitive data each of these
fits would be charged to the same budget: choose epsilon first, with `plan`, and fit once.

    python examples/accuracy_against_epsilon.py
"""

import numpy as np
from matplotlib.figure import Figure
from sklearn.linear_model import Ridge

from riata import PrivateLasso
from riata.datasets import load_flights

EPSILONS = [0.03, 0.1, 0.3, 1.0, 3.0, 10.0]
REPEATS = 3

flights = load_flights()
train = np.arange(len(flights.y)) % 4 != 0
x, y = flights.x[train], flights.y[train]
held_x, held_y = flights.x[~train], flights.bounds.clip_y(flights.y[~train])

exact = Ridge(1.0, solver="lsqr").fit(flights.bounds.clip_x(x), flights.bounds.clip_y(y))
ceiling = exact.score(flights.bounds.clip_x(held_x), held_y)

scores = np.empty((len(EPSILONS), REPEATS))
for i, epsilon in enumerate(EPSILONS):
    for k in range(REPEATS):
        model = PrivateLasso(epsilon, 1e-6, bounds=flights.bounds, verbose=True).fit(x, y)
        scores[i, k] = model.score(held_x, held_y)
    print(f"epsilon {epsilon:5g}: R2 {scores[i].mean():.3f} after {model.n_iter_} steps")
print(f"without privacy: R2 {ceiling:.3f}")

figure = Figure(figsize=(6, 3.6), layout="constrained")
axes = figure.subplots()
axes.plot(EPSILONS, scores, ".", color="#d6a46c")
axes.plot(EPSILONS, scores.mean(axis=1), "o-", color="#b45309", label="private")
axes.axhline(ceiling, linestyle="--", color="#64748b", label="least squares, without privacy")
axes.set(xscale="log", xlabel="epsilon (delta = 1e-6)", ylabel="R2 on held-out flights")
axes.legend(frameon=False)
axes.spines[["top", "right"]].set_visible(False)
figure.savefig("accuracy_against_epsilon.png", dpi=150)
