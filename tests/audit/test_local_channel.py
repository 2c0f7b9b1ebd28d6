"""Reports of devices, audited from what they send: sound ones are never accused, broken ones are.

An attacker who knows the two rows that a device may hold asks of each report which of the two it
was surely accepted for. That is all that its probability depends on, so no attack does better.
Seeds are fixed. Over the choice of a seed, a sound channel is accused by an audit at `FAILURE`
with probability at most 1e-9, and shows less than 0.95 epsilon with probability below 1e-8: the
numbers of devices leave 5.7 standard deviations between the two. The bounds at 99.5% that the
project promises are checked beside them; with these seeds none is above epsilon.
"""

from dataclasses import replace

import numpy as np
import pytest

from riata import audit
from riata.local import Client, Task, questions
from riata.local.randomize import choose_questions, randomize
from riata.mechanisms.noise import Noise

FAILURE = 1e-9
STATED = 0.005

#: The degree-2 channel with next to nothing of the other, the degree-1 channel, and rows that are
#: reported on together with their target, which is 1.
TASKS = {
    "joint": {"kind": "linear", "target": {"name": "t", "kind": "yes-no"}, "intercept": 0.0},
    1: {"kind": "mean"},
    2: {
        "kind": "linear",
        "target": {"name": "t", "kind": "yes-no"},
        "arms": {"gram": 0.999, "cross": 0.001},
        "intercept": 0.0,
    },
}
#: The rows that differ most: opposite for v, orthogonal for v v'.
PAIRS = {
    1: ([1.0, 0.0], [-1.0, 0.0]),
    2: ([1.0, 0.0], [0.0, 1.0]),
    "joint": ([1.0, 0.0], [-2 / 3, (1 - 4 / 9) ** 0.5]),
}
DEVICES = {(1, 1.0): 150_000, (1, 4.0): 150_000, (2, 1.0): 320_000, (2, 4.0): 180_000,
           ("joint", 1.0): 320_000, ("joint", 4.0): 180_000}  # fmt: skip
every_channel = pytest.mark.parametrize(("degree", "epsilon"), DEVICES)


def made(degree, epsilon, size=2):
    vector = {"name": "v", "kind": "vector", "size": size, "bounds": [-1, 1]}
    return Task.from_table(
        {"epsilon": epsilon, "features": [vector], "length": 1.0, **TASKS[degree]}
    )


def reports(task, row, devices, seed):
    rows = np.repeat(np.array([row]), devices, axis=0)
    return randomize(task, rows, np.ones(devices), Noise(seed))


def surely(task, row, seeds):
    """Which of the reports a device with this row surely accepts."""
    found = np.zeros(len(seeds), dtype=int)
    for number, question in enumerate(task.questions):
        own = np.flatnonzero(choose_questions(task, seeds) == number)
        for part in np.array_split(own, 1 + len(own) * question.channel.size // 10**7):
            prepared = question.prepare(task.vectors(np.array([row])), np.ones(1))
            held = np.repeat(prepared, len(part), axis=0)
            normals = task.generator.normals(seeds[part], question.channel.size)
            products = (normals * question.directions(held, seeds[part])).sum(axis=1)
            found[part] = question.channel.accepts_surely(products)
    return found


def telling(task, pair, seeds):
    """1 for reports that speak for the first row, -1 for the second, 0 for neither."""
    return surely(task, pair[0], seeds) - surely(task, pair[1], seeds)


def bound(ours, theirs, failure=FAILURE):
    return audit.epsilon_lower_bound(ours, theirs, failure=failure, ordered=True)


def statistics(task, pair, devices, judge=None, seed=1):
    return [
        telling(judge or task, pair, reports(task, row, devices, seed + i))
        for i, row in enumerate(pair)
    ]


@pytest.mark.matrix(one_in=5)
@every_channel
def test_reports_cost_what_they_claim_and_no_more(degree, epsilon):
    task = made(degree, epsilon)
    ours, theirs = statistics(task, PAIRS[degree], DEVICES[degree, epsilon])
    assert bound(ours, theirs) <= epsilon
    assert 0.95 * epsilon <= bound(ours, theirs, STATED) <= epsilon


def test_rows_inside_the_ball_cost_no_more():
    task = made(1, 1.0)
    for pair in (([0.0, 0.0], [1.0, 0.0]), ([0.5, 0.5], [0.5, -0.5]), ([0.0, 0.0], [0.1, 0.0])):
        ours, theirs = statistics(task, pair, 40_000, seed=5)
        assert bound(ours, theirs) <= 1.0


def test_a_client_sends_what_was_audited():
    """The public interface, with fewer devices."""
    task = made(1, 1.0)
    said = [
        telling(
            task,
            PAIRS[1],
            from_clients(lambda i, row=row: Client(task, random_state=i).report(row)),
        )
        for row in PAIRS[1]
    ]
    assert 0.5 <= bound(*said) <= 1.0


def from_clients(report, devices=3000):
    sent = b"".join(report(i) for i in range(devices))
    return np.frombuffer(sent, ">u8").astype(np.uint64)


@pytest.mark.parametrize("degree", [1, 2])
def test_the_law_over_all_seeds_of_a_small_arm_is_within_its_margin(degree):
    """Exactly, by counting all seeds: nothing is drawn. Rows are chosen to be treated unevenly."""
    task = made(degree, 1.0)
    count = 40_000  # so that some seeds have one word more than others
    question = replace(task.questions[0], first=0, seeds=count)
    seeds = np.arange(count, dtype=np.uint64)
    normals = task.generator.normals(seeds, 3)
    words = np.array([-(-(s + 1 << 64) // count) - -(-(s << 64) // count) for s in range(count)])
    assert sum(int(w) for w in words) == 2**64
    weights = words / 2.0**64
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(40, 2))
    rows *= rng.uniform(0, 1, (40, 1)) / np.linalg.norm(rows, axis=1, keepdims=True)
    leaning = normals[:, :2].mean(axis=0)
    rows = np.vstack([rows, np.eye(2), -np.eye(2), np.zeros((1, 2)), leaning[None]])
    coin = question.channel.coin / 2**64
    laws = []
    for row in rows:
        held = question.directions(np.repeat(row[None], count, axis=0), seeds)
        accepted = np.where(
            question.channel.accepts_surely((normals * held).sum(axis=1)), 1.0, coin
        )
        assert abs((weights * accepted).sum() - question.channel.acceptance) < 0.02
        laws.append(weights * accepted / (weights * accepted).sum())
    laws = np.log(laws)
    worst = (laws.max(axis=0) - laws.min(axis=0)).max()
    assert 0.9 < worst <= -np.log(coin) + question.channel.margin(count)


@pytest.mark.slow
def test_reports_through_a_sketch_cost_what_they_claim_and_no_more():
    task = made(1, 4.0, size=2100)
    assert task.questions[0].sketch is not None
    row = np.random.default_rng(0).normal(size=2100)
    pair = [row / np.linalg.norm(row), -row / np.linalg.norm(row)]
    ours, theirs = [], []
    for i in range(20):
        for side, (rows, found) in enumerate(zip(pair, (ours, theirs), strict=True)):
            found.append(telling(task, pair, reports(task, rows, 1500, 100 + 2 * i + side)))
    ours, theirs = np.concatenate(ours), np.concatenate(theirs)
    assert 0.9 * 4.0 <= bound(ours, theirs, STATED) <= 4.0
    assert bound(ours, theirs) <= 4.0


# Broken twins


@every_channel
def test_a_coin_that_is_too_small_is_caught(degree, epsilon):
    task = made(degree, epsilon)
    halved = tuple(
        replace(each, channel=replace(each.channel, coin=each.channel.coin // 2))
        for each in task._questions
    )
    broken = replace(task, _questions=halved)
    ours, theirs = statistics(broken, PAIRS[degree], DEVICES[degree, epsilon] // 3)
    assert bound(ours, theirs) > epsilon


@pytest.mark.parametrize("epsilon", [1.0, 4.0])
def test_a_threshold_on_vectors_of_any_length_is_caught(epsilon, monkeypatch):
    """Without the last coordinate that fills the length, the normaliser depends on the row."""
    task = made(1, epsilon)
    monkeypatch.setattr(questions, "lift", lambda rows: np.column_stack([rows, 0 * rows[:, :1]]))
    pair = ([0.6, 0.0], [-10.0, 0.0])
    ours, theirs = statistics(task, pair, 60_000)
    assert bound(ours, theirs) > epsilon


@pytest.mark.parametrize("epsilon", [1.0, 4.0])
def test_a_target_that_makes_vectors_longer_is_caught(epsilon, monkeypatch):
    """Rows that are longer than the task says are shortened together with their target."""
    task = made("joint", epsilon)
    long = ([3.0, 0.0], [0.0, 0.1])
    assert bound(*statistics(task, long, 30_000)) <= epsilon

    def joined(rows, targets):
        return np.column_stack([rows * 0.6**0.5, targets * 0.4**0.5])

    monkeypatch.setattr(questions, "join", joined)
    assert bound(*statistics(task, long, 60_000)) > epsilon


@pytest.mark.parametrize("degree", [1, 2])
def test_a_retry_that_draws_again_is_caught(degree):
    """Two reports of the same row: the sum of what they say."""
    task = made(degree, 1.0)
    first = statistics(task, PAIRS[degree], 60_000)
    again = statistics(task, PAIRS[degree], 60_000, seed=31)
    assert bound(*(a + b for a, b in zip(first, again, strict=True))) > 1.0


def test_a_client_without_memory_is_caught():
    """The same through the client: a report is forgotten, and drawn again for the retry."""
    task = made(1, 1.0)

    def twice(row, i):
        client = Client(task, random_state=i)
        one = client.report(row)
        client._journal._reports.clear()
        return one + client.report(row)

    sent = [from_clients(lambda i, row=row: twice(row, i)) for row in PAIRS[1]]
    said = [telling(task, PAIRS[1], seeds).reshape(-1, 2).sum(axis=1) for seeds in sent]
    assert bound(*said) > 1.0


@pytest.mark.parametrize("epsilon", [1.0, 4.0])
def test_an_arm_that_is_chosen_by_the_data_is_caught(epsilon, monkeypatch):
    """One of the rows is hardly ever asked the second question."""
    even = {"gram": 0.5, "cross": 0.5}
    task = Task.from_table({**made(2, epsilon).table(), "arms": even})
    ours = choose_questions(task, reports(task, PAIRS[2][0], 20_000, 70))
    monkeypatch.setattr(
        "riata.local.randomize.choose_questions",
        lambda task, words: choose_questions(task, words) * (words % np.uint64(200) == 0),
    )
    theirs = choose_questions(task, reports(task, PAIRS[2][1], 20_000, 71))
    assert bound(ours, theirs) > epsilon
