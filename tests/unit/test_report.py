"""The page about a model: what it says, what it hides from hostile names, and what it loads."""

import html as escaping
import math
import re
import sys
from html.parser import HTMLParser
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

import riata
from riata import (
    Bounds,
    Budget,
    HeavyTailedRegression,
    Ledger,
    LocalKernelRidge,
    LocalLasso,
    LocalLogisticRegression,
    LocalSparseMean,
    PrivateErm,
    PrivateLasso,
    PrivateLinearSVC,
    PrivateLogisticRegression,
    PrivatePoissonRegression,
    PrivateSparseRegression,
    ProjectedClassifier,
    ProjectedRegression,
    forecast,
    report,
)
from riata.errors import InvalidArgument
from riata.losses import Huber
from riata.privacy.statement import Statement
from riata.report.guarantee import guarantee
from riata.report.text import both_ends
from riata.sets import GroupL1Ball

pytestmark = pytest.mark.matrix(one_in=11)

N, P = 300, 6
INF = Bounds(1.0, 1.0)
LENGTH = Bounds(1.0, 1.0, norm="l2")
HOSTILE = '--><script>alert("x")</script><img src=http://evil.example/p.png onerror=alert(1)>'


def rows(n=N, p=P):
    x = np.random.default_rng(2).uniform(-1, 1, (n, p))
    return x, x[:, 0] / 2


class Page(HTMLParser):
    """The elements of a page, its headings, and whether it is closed as it is opened."""

    EMPTY = frozenset({"meta", "ellipse", "path", "use", "rect"})

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.tags, self.open, self.headings, self.text, self.ids = [], [], [], [], []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))
        self.ids += [value for name, value in attributes if name == "id"]
        if tag in {"h1", "h2", "h3"}:
            self.headings.append(int(tag[1]))
        if tag not in self.EMPTY:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))
        self.ids += [value for name, value in attributes if name == "id"]

    def handle_endtag(self, tag):
        if tag not in self.EMPTY:
            assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)

    @property
    def words(self):
        return " ".join(" ".join(self.text).split())


def read(text):
    """The page, after what holds for every page: nothing is loaded, nothing runs, all is named."""
    page = Page(text)
    names = {tag for tag, _ in page.tags}
    assert not names & {"script", "link", "img", "iframe", "object", "embed", "base", "image"}
    for tag, attributes in page.tags:
        for name, value in attributes.items():
            assert not name.startswith("on"), (tag, name)
            assert name not in ("src", "srcset", "action", "data")
            if name in ("href", "xlink:href"):
                assert value.startswith("#")
                assert value[1:] in page.ids
    assert "@import" not in text
    assert re.findall(r"url\((?!#)", text) == []
    assert len(page.ids) == len(set(page.ids))
    assert page.headings[0] == 1
    assert page.headings.count(1) == 1
    assert all(after - before <= 1 for before, after in pairwise(page.headings))
    assert all(a.get("aria-label") for tag, a in page.tags if tag == "figure")
    assert all(a.get("scope") in ("col", "row") for tag, a in page.tags if tag == "th")
    assert dict(page.tags)["html"] == {"lang": "en"}
    return page


FITS = {
    "lasso": PrivateLasso(1.0, bounds=INF),
    "frank-wolfe": PrivateLasso(1.0, bounds=INF, solver="frank-wolfe"),
    "greedy": PrivateLasso(1.0, bounds=Bounds(np.ones(P), 1.0), solver="greedy"),
    "sparse": PrivateSparseRegression(1.0, bounds=INF, sparsity=2),
    "heavy": HeavyTailedRegression(1.0, sparsity=2),
    "projected": ProjectedRegression(1.0, bounds=LENGTH, dimension=3),
    "compressed": ProjectedRegression(1.0, bounds=LENGTH, projection=np.eye(P), compressed=True),
    "erm": PrivateErm(Huber(0.5), GroupL1Ball(2, 1.0), 1.0, bounds=LENGTH),
    "add-remove": PrivateLasso(1.0, bounds=INF, adjacency="add-remove"),
    "pure": PrivateLasso(1.0, 0.0, bounds=INF, solver="frank-wolfe"),
    "logistic": PrivateLogisticRegression(1.0, bounds=INF, classes=[0, 1]),
    "three classes": PrivateLogisticRegression(1.0, bounds=INF, classes=[0, 1, 2]),
    "observed": PrivateLogisticRegression(1.0, bounds=LENGTH, classes="observed"),
    "svm": PrivateLinearSVC(1.0, bounds=INF, classes=[0, 1]),
    "projected classes": ProjectedClassifier(1.0, bounds=LENGTH, classes=[0, 1], dimension=3),
    "local mean": LocalSparseMean(1.0, bounds=LENGTH),
    "local plain mean": LocalSparseMean(1.0, bounds=LENGTH, threshold="none"),
    "local lasso": LocalLasso(1.0, bounds=LENGTH),
    "local kernel": LocalKernelRidge(1.0, bounds=LENGTH, pairs=2),
    "local logistic": LocalLogisticRegression(1.0, bounds=LENGTH, classes=[0, 1]),
}


@pytest.mark.parametrize("name", FITS)
def test_every_estimator_has_a_page(name):
    x, y = rows()
    model = FITS[name]
    model.fit(x, (y > 0).astype(int) if hasattr(model, "classes") else y)
    page = read(report.html(model))
    said = model.privacy_
    assert said.sentence in page.words
    assert type(model).__name__ in page.words
    for line in (*said.releases, *said.notes, said.accountant):
        assert " ".join(line.split()) in page.words
    assert "What is not promised" in page.words
    assert "NOT PRIVATE" not in page.words
    if name.startswith("local"):
        assert "This is a simulation" in page.words
        assert model.task_.id in page.words
    else:
        assert "Fixed before a row was read" in page.words
    alarms = [a for _, a in page.tags if "alarm" in (a.get("class") or "").split()]
    assert alarms == []


@pytest.mark.parametrize("name", ["lasso", "local lasso"])
def test_a_seeded_model_has_a_red_banner(name):
    x, y = rows()
    model = FITS[name].__class__(1.0, bounds=LENGTH, random_state=0).fit(x, y)
    page = read(report.html(model))
    assert "This model is not private: its noise is known" in page.words
    assert ("div", {"class": "banner alarm", "role": "alert"}) in page.tags
    assert "What would be promised" in page.words


def test_a_model_without_noise_promises_nothing():
    x, y = rows()
    page = read(report.html(PrivateLasso(math.inf, bounds=INF, steps=5).fit(x, y)))
    assert "This model is not private" in page.words
    assert "Nothing about privacy is promised." in page.words
    assert "times as likely" not in page.words
    assert ("div", {"class": "banner alarm", "role": "alert"}) in page.tags


# The guarantee in words.


def said(epsilon, delta=0.0, adjacency="replace-one", **more):
    return Statement(epsilon, delta, adjacency, "s", 1, "a", (), {}, **more)


@pytest.mark.parametrize("epsilon", [0.01, 0.3, 1.0, 2.5, 8.0, 15.0, 30.0, 500.0])
@pytest.mark.parametrize("delta", [0.0, 1e-6, 0.2])
def test_the_numbers_are_rounded_against_the_claim(epsilon, delta):
    found = guarantee(said(epsilon, delta), simulated=False)
    tiles = [tile.value for tile in found.tiles]
    if not tiles[2].startswith(">"):
        factor = float(tiles[2].split()[0].replace(",", ""))
        assert math.exp(epsilon) <= factor <= 1.02 * math.exp(epsilon)
    right = (1 + delta * math.exp(-epsilon)) / (1 + math.exp(-epsilon))
    assert 100 * min(1, right) - 1e-9 <= float(tiles[3].rstrip("%")) <= 100 * right + 0.1
    assert tiles[3] in found.promise[1]


def test_the_guess_is_the_one_of_randomised_response():
    """The best test of the worst pair is right with probability e^eps / (1 + e^eps)."""
    assert guarantee(said(math.log(3)), simulated=False).tiles[3].value == "75.0%"


def test_the_words_follow_the_adjacency():
    assert "Had any one row been different" in guarantee(said(1.0), False).promise[0]
    added = guarantee(said(1.0, adjacency="add-remove"), False)
    assert "Whether any one row took part or not" in added.promise[0]
    people = guarantee(said(1.0, adjacency="replace-person"), False)
    assert "Had any one person had other rows" in people.promise[0]
    assert "two ids" in people.limits[0]
    assert not any("one row" in text for text in (*people.promise, people.headline))
    local = guarantee(said(1.0, adjacency="local"), False)
    assert "on each person's own device" in local.promise[0]
    assert "1 in 1,000,000" in guarantee(said(1.0, 1e-6), False).promise[0]


def test_a_large_epsilon_is_called_large():
    assert "protects little" in guarantee(said(11.0), False).warning
    assert guarantee(said(10.0), False).warning == ""


# Coefficients.


def test_the_coefficients_stand_there_with_their_errors_and_their_order():
    x, y = rows(5000)
    data = pd.DataFrame(x, columns=[f"measure {j}" for j in range(P)])
    model = PrivateLasso(4.0, bounds=INF, solver="greedy").fit(data, y)
    assert model.selection_order_[0] == 1
    assert math.isfinite(model.coef_error_[0])
    words = read(report.html(model)).words
    assert "standard error 90% interval" in words
    row = re.search(r"measure 0 1 (\S+) (\S+) (\S+) to (\S+)", words)
    assert float(row[1]) == pytest.approx(model.coef_[0], rel=1e-3)
    assert float(row[2]) == pytest.approx(model.coef_error_[0], rel=0.1)
    assert float(row[3]) < model.coef_[0] < float(row[4])


def test_frank_wolfe_says_in_which_order_it_went():
    x, y = rows(5000)
    model = PrivateLasso(4.0, bounds=INF, solver="frank-wolfe", steps=5).fit(x, y)
    places = model.selection_order_[model.selection_order_ > 0]
    assert sorted(places) == list(range(1, len(places) + 1))
    assert set(np.flatnonzero(model.coef_)) <= set(np.flatnonzero(model.selection_order_))
    assert "selected" in read(report.html(model)).words


def test_a_solver_without_errors_or_order_does_not_show_them():
    x, y = rows()
    model = PrivateLasso(1.0, bounds=LENGTH, solver="noisy-gradient").fit(x, y)
    words = read(report.html(model)).words
    assert "standard error" not in words
    assert "“Selected”" not in words
    assert "says nothing about the errors" in words


@pytest.mark.not_quick
def test_a_hundred_thousand_columns_make_a_usable_page():
    x = sparse.csr_array((100, 100_000))
    model = PrivateLasso(1.0, bounds=INF, solver="frank-wolfe", steps=3).fit(x, np.zeros(100))
    model.coef_ = np.linspace(-1, 1, 100_000)
    text = report.html(model)
    page = read(text)
    assert len(text) < 300_000
    assert "The table ends after 500 columns" in page.words
    assert "x[99999]" in page.words
    assert "x[50000]" not in page.words


def test_many_classes_share_the_lines_of_the_page(monkeypatch):
    from riata.estimators.coefficients import Coefficients
    from riata.report import functions

    monkeypatch.setattr(functions, "MOST_DRAWN", 1)
    ones = np.ones(100)
    some = [Coefficients(f"c{k}", ones, ones, np.zeros(100, dtype=int)) for k in range(60)]
    found = functions.functions(some, "coefficient")
    assert [len(each.table.rows) for each in found] == [33] * 60
    assert [each.plot is not None for each in found] == [True] + [False] * 59
    assert "The table ends after 33 columns" in found[0].note


def test_names_can_be_given_and_must_fit():
    x, y = rows()
    model = PrivateErm(Huber(0.5), GroupL1Ball(2, 1.0), 1.0, bounds=LENGTH).fit(x, y)
    model.coef_ = np.ones(P)
    assert "petal" in read(report.html(model, names=["petal", *"bcdef"])).words
    with pytest.raises(InvalidArgument, match="names has 1 names"):
        report.html(model, names=["petal"])


def labels(text):
    """What the drawings of a page say to people who cannot see them."""
    return [each["aria-label"] for tag, each in read(text).tags if tag == "figure"]


@pytest.mark.not_quick
def test_ratios_are_drawn_where_there_are_some():
    x, _ = rows(5000)
    rng = np.random.default_rng(0)
    odds = PrivateLogisticRegression(4.0, bounds=Bounds(1.0), random_state=0)
    odds.fit(x, rng.random(5000) < 1 / (1 + np.exp(-3 * x[:, 0])))
    rates = PrivatePoissonRegression(4.0, bounds=Bounds(1.0, 9.0), random_state=0)
    rates.fit(x, rng.poisson(np.exp(x[:, 0])))
    for model, kind in ((odds, "odds"), (rates, "rate")):
        text = report.html(model, names=["petal", *"bcdef"])
        (said,) = [each for each in labels(text) if each.startswith(f"The {kind} ratios")]
        term = {t.name: t for t in model.summary(0.9).functions[0].terms}["x[0]"]
        ends = f"({term.ratio_low:.3g} to {term.ratio_high:.3g})"
        assert f"petal: {term.ratio:.3g} {ends}" in said
        assert f"The factors on the {kind} for one unit" in read(text).words
    line = PrivateLasso(4.0, bounds=INF, random_state=0).fit(x, x[:, 0] / 2)
    assert not any("ratios" in each for each in labels(report.html(line)))


@pytest.mark.not_quick
@pytest.mark.parametrize("coef", [[900.0, -900.0], [3.0, 0.001], [1e-7, 1e-6], [12.0, -1.0]])
@pytest.mark.parametrize("error", [1e-9, 0.5, 800.0])
def test_ratios_of_every_size_are_drawn(coef, error):
    model = PrivateLogisticRegression(1.0, bounds=Bounds(1.0), classes=[0, 1])
    model.fit(np.zeros((20, 3)), np.array([0, 1] * 10))
    model.coef_, model.coef_error_ = np.array([[*coef, 1.0]]), np.array([[error, error, np.nan]])
    (said,) = [each for each in labels(report.html(model)) if each.startswith("The odds ratios")]
    assert "x[2]" not in said  # its error is unknown
    model.coef_error_ = np.full((1, 3), np.nan)
    assert not any("ratios" in each for each in labels(report.html(model)))


# What comes from outside.


@pytest.mark.not_quick
def test_hostile_names_are_shown_and_do_nothing(tmp_path):
    x, y = rows()
    names = [HOSTILE, "$x^2$", "a\x00\x1b[31m", "\u202egnp.exe", "日本" * 300, "{{ 7 * 7 }}"]
    model = PrivateLogisticRegression(1.0, bounds=INF, classes=["a", HOSTILE])
    model.fit(pd.DataFrame(x, columns=names), np.full(N, "a"))
    model.coef_ = np.arange(1.0, P + 1)[None]
    ledger = Ledger.create(":memory:", dataset=HOSTILE, ceiling=Budget(9.0, 1e-6))
    PrivateLasso(1.0, bounds=INF, ledger=ledger).fit(x, y)
    section = report.Section(HOSTILE, [HOSTILE], [HOSTILE], [[HOSTILE]], label=HOSTILE)
    text = report.html(model, ledger=ledger, title=HOSTILE, sections=[section])
    page = read(text)
    assert HOSTILE[:50] in page.words
    assert "<script" not in text
    assert "{{ 7 * 7 }}" in page.words
    assert "\x1b" not in text
    assert "\u202e" not in text
    report.write(model, tmp_path / "page.html")
    assert escaping.escape("$x^2$") in (tmp_path / "page.html").read_text(encoding="utf-8")


@pytest.mark.not_quick
def test_the_budget_is_drawn_over_time():
    x, y = rows()
    ledger = Ledger.create(":memory:", dataset="claims", ceiling=Budget(3.0, 1e-6))
    for epsilon in (0.5, 0.25):
        model = PrivateLasso(epsilon, 1e-7, bounds=INF, ledger=ledger).fit(x, y)
    page = read(report.html(model))  # the model's own ledger
    assert "Budget of “claims”" in page.words
    assert "Charges: 2." in page.words
    assert f"{ledger.charges[1].total / 1e9:.6g}" in page.words
    assert "ceiling 3" in page.words
    without = report.html(PrivateLasso(0.5, bounds=INF).fit(x, y))
    assert "Budget of" not in without


def test_an_empty_ledger_and_one_over_months_are_drawn():
    from datetime import UTC, datetime, timedelta

    from riata.report.plots import of_budget
    from riata.report.spending import spending

    empty = spending(Ledger.create(":memory:", dataset="d", ceiling=Budget(1.0)))
    assert empty.plot is None
    assert empty.share == 0.0
    days = [datetime(2026, 1, 1, tzinfo=UTC) + timedelta(days=40 * k) for k in range(5)]
    drawn = of_budget(days, [0.1, 0.2, 0.3, 0.4, 0.5], 1.0)
    assert "time of the charge" in drawn.wide


def test_a_forecast_is_shown():
    x, y = rows()
    model = PrivateLasso(1.0, bounds=INF)
    expected = forecast(model, N, P, relevant=2, repeats=2)
    words = read(report.html(model.fit(x, y), forecast=expected)).words
    assert expected.sentence in words
    assert "Forecast before the fit" in words


def test_the_callers_sections_are_shown():
    x, y = rows()

    def draw(figure, width):
        figure.subplots().plot([0, 1], [0, 1], color="#b45309")

    section = report.Section("Held out", ["On others."], ["model", "R2"], [["mine", "0.5"]], draw)
    text = report.html(PrivateLasso(1.0, bounds=INF).fit(x, y), sections=[section])
    words = read(text).words
    assert "Held out On others." in words
    assert "mine 0.5" in words
    assert 'aria-label="Held out"' in text
    assert "#b45309" not in text


@pytest.mark.not_quick
def test_a_plan_that_was_changed_after_the_fit_is_not_shown():
    x, y = rows()
    model = PrivateLasso(1.0, bounds=INF).fit(x, y)
    assert "Fixed before a row was read" in report.html(model)
    assert "Fixed before a row was read" not in report.html(model.set_params(epsilon=2.0))
    assert "Fixed before a row was read" not in report.html(model.set_params(epsilon=-2.0))


def test_no_row_is_needed_and_no_value_of_one_is_shown():
    x, y = rows()
    x[0, 0], y[0] = 0.7310585786, 0.8175744761
    text = report.html(PrivateLasso(1.0, bounds=INF).fit(x, y))
    assert "0.73105857" not in text
    assert "0.81757447" not in text


@pytest.mark.parametrize("thing", [PrivateLasso(1.0), None, {"coef_": 1}, LocalLasso(1.0)])
def test_what_is_no_fitted_model_is_refused(thing):
    with pytest.raises(InvalidArgument, match=r"not fitted|Cannot report"):
        report.html(thing)


@pytest.mark.parametrize(("module", "name"), [("jinja2", "Jinja2"), ("matplotlib", "matplotlib")])
def test_a_missing_package_is_named_with_its_extra(module, name, monkeypatch):
    x, y = rows()
    model = PrivateLasso(1.0, bounds=INF).fit(x, y)
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(InvalidArgument, match=rf"{name}.*riata\[report\]"):
        report.html(model)


def test_a_ledger_and_a_forecast_must_be_one():
    x, y = rows()
    model = PrivateLasso(1.0, bounds=INF).fit(x, y)
    with pytest.raises(InvalidArgument, match="ledger must be a Ledger"):
        report.html(model, ledger="study.db")
    with pytest.raises(InvalidArgument, match="forecast must be a Forecast"):
        report.html(model, forecast="good")


# A notebook.


def test_a_notebook_shows_guarantee_and_coefficients():
    x, y = rows()
    data = pd.DataFrame(x, columns=[HOSTILE, *"bcdef"])
    model = PrivateLasso(1.0, bounds=INF)
    assert "sk-" in model._repr_html_()
    model.fit(data, y)
    model.coef_ = np.arange(1.0, P + 1)
    for shown in (model._repr_html_(), model._repr_mimebundle_()["text/html"]):
        page = Page(shown)
        assert model.privacy_.sentence in page.words
        assert HOSTILE in page.words
        assert "6 of 6 columns are not 0" in page.words
        assert "<script" not in shown
        assert len(shown) < 10_000


@pytest.mark.parametrize("name", ["three classes", "local mean", "local kernel", "local logistic"])
def test_a_notebook_shows_every_kind_of_model(name):
    x, y = rows()
    model = FITS[name]
    model.fit(x, (y > 0).astype(int) if hasattr(model, "classes") else y)
    assert model.privacy_.sentence in Page(model._repr_html_()).words


@pytest.mark.parametrize("most", [5, 16, 19])
def test_columns_of_one_feature_are_told_apart_on_a_phone(most):
    names = [f"capital-gain near {knot}" for knot in (10, 23, 87)]
    short = [both_ends(name, most) for name in names]
    assert len(set(short)) == 3
    assert all(len(name) == most for name in short)
    assert both_ends("age", most) == "age"


def test_numbers_with_knots_or_bins_are_drawn_as_curves():
    rng = np.random.default_rng(0)
    rows = pd.DataFrame({name: rng.integers(0, 100, 3000) for name in ("age", "visits", "<dose>")})
    rows["cost"] = 5 * rows["age"]
    table = {
        "features": [
            {"name": "age", "kind": "number", "bounds": [0, 100], "knots": 5},
            {"name": "visits", "kind": "count", "most": 100, "knots": 4},
            {"name": "<dose>", "kind": "number", "bounds": [0, 100], "bins": 3},
        ],
        "target": {"name": "cost", "bounds": [0, 500]},
    }
    model = PrivateLasso(2.0, 1e-6, random_state=0).fit(riata.read(rows, table))
    page = report.html(model)
    assert "linear function changes with a number" in page
    assert re.search(r"Curves\. [^\"]*age -[^\"]* at 0, \+[^\"]* at 100", page)
    assert "<dose>" not in page
    lines = table | {"features": [each | {"knots": 0} for each in table["features"][:2]]}
    lines["ignore"] = ["<dose>"]
    straight = PrivateLasso(2.0, 1e-6, random_state=0).fit(riata.read(rows, lines))
    assert "linear function changes" not in report.html(straight)
