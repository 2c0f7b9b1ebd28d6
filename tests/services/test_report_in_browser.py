"""A model's page as people see it: on a screen, on a phone, in the dark and on paper."""

import os

import numpy as np
import pandas as pd
import pytest
from surveying import PATIENCE, PICTURES

from riata import Bounds, Budget, Ledger, PrivateLasso, PrivateLogisticRegression, report

pytestmark = pytest.mark.services

SIZES = {"phone": {"width": 390, "height": 844}, "desktop": {"width": 1280, "height": 900}}
COLUMNS = [
    "age", "income", "visits last year", "nights in hospital", "smoker", "pulse at rest",
    "medicines", "chronic conditions", "distance to a doctor", "emergency calls",
    *(f"diagnosis {code}" for code in range(100, 150)),
]  # fmt: skip


def claims(n=20_000):
    """Made-up insurance claims: entries between -1 and 1, and costs."""
    rng = np.random.default_rng(11)
    x = pd.DataFrame(rng.uniform(-1, 1, (n, len(COLUMNS))), columns=COLUMNS)
    true = {"nights in hospital": 0.5, "chronic conditions": 0.35, "age": 0.3, "smoker": 0.22,
            "medicines": 0.15, "distance to a doctor": -0.1, "emergency calls": 0.08,
            "diagnosis 107": 0.06}  # fmt: skip
    costs = sum(weight * x[name] for name, weight in true.items())
    return x, np.clip(costs + 0.3 * rng.standard_normal(n), -2, 2)


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """The page of a study with a ledger, and those of a test fit and of hostile names."""
    folder = tmp_path_factory.mktemp("pages")
    x, y = claims()
    bounds = Bounds(x=1.0, y=2.0)
    ledger = Ledger.create(":memory:", dataset="claims-2026", ceiling=Budget(2.0, 1e-6))
    for epsilon in (0.1, 0.2, 0.2):
        PrivateLasso(epsilon, 1e-7, bounds=bounds, ledger=ledger).fit(x, y)
    model = PrivateLasso(0.6, 1e-7, bounds=bounds, ledger=ledger, solver="greedy").fit(x, y)
    report.write(model, folder / "study.html", title="What hospital costs go with")
    seeded = PrivateLogisticRegression(
        1.0, bounds=Bounds(1.0), classes=["low", "middle", "high"], random_state=0
    )
    seeded.fit(x, np.array(["low", "middle", "high"])[np.digitize(y, [-0.3, 0.3])])
    report.write(seeded, folder / "seeded.html")
    hostile = x.iloc[:300, :4].set_axis(
        ["<script>alert(1)</script>", "W" * 500, "a\nb", "日本"], axis=1
    )
    fitted = PrivateLasso(1.0, bounds=bounds, random_state=0).fit(hostile, y[:300])
    fitted.coef_ = np.array([1.0, -2.0, 3.0, -4.0])
    report.write(fitted, folder / "hostile.html", title="W" * 200)
    return folder


def opened(browser, path, size, **more):
    """The page, and everything that it says on the console or asks of the network."""
    context = browser.new_context(viewport=size, **more)
    context.set_default_timeout(PATIENCE)
    page, heard = context.new_page(), []
    page.on("console", lambda message: heard.append(message.text))
    page.on("pageerror", lambda problem: heard.append(str(problem)))
    page.on("dialog", lambda dialog: heard.append(dialog.message))
    page.on("request", lambda request: heard.append(request.url))
    page.goto(path.as_uri())
    page.wait_for_timeout(200)
    assert heard == [path.as_uri()]
    return page


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", ["study", "seeded", "hostile"])
def test_the_page_is_quiet_and_fits(browser, pages, name, size):
    page = opened(browser, pages / f"{name}.html", SIZES[size])
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    drawn = page.locator("figure svg:visible")
    assert drawn.count() >= 1
    assert drawn.first.evaluate("s => s.getBoundingClientRect().right <= innerWidth")
    smallest = page.evaluate(
        """Math.min(...[...document.querySelectorAll("figure svg text")]
            .filter(t => t.checkVisibility())
            .map(t => t.getBoundingClientRect().height))"""
    )
    assert smallest >= 9
    shot = page.screenshot(full_page=True)
    assert len(shot) > 50_000
    if os.environ.get("RIATA_PICTURES") and name == "study":
        last = page.locator("#coefficients figure" if size == "phone" else "#budget")
        last = last.bounding_box()
        height = last["y"] + last["height"] + 20
        clip = {"x": 0, "y": 0, "width": SIZES[size]["width"], "height": height}
        page.screenshot(path=PICTURES / f"report_{size}.png", full_page=True, clip=clip)
    page.context.close()


def test_every_link_leads_to_a_section(browser, pages):
    page = opened(browser, pages / "study.html", SIZES["phone"], reduced_motion="reduce")
    for link in page.locator("nav a").all():
        link.click()
        target = page.locator(link.get_attribute("href"))
        assert target.evaluate("t => Math.abs(t.getBoundingClientRect().top) < innerHeight")
    page.context.close()


#: The contrast of each text with the colour behind it, after WCAG 2.
CONTRAST = """() => {
  const parsed = c => c.match(/[\\d.]+/g).map(Number);
  const light = c => { const [r, g, b] = parsed(c).slice(0, 3).map(v => v / 255)
      .map(v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
  const behind = e => { for (; e; e = e.parentElement) {
      const c = getComputedStyle(e).backgroundColor;
      if (!/, 0\\)$/.test(c)) return c; } };
  const texts = "h1, h2, h3, p, li, td, th, dt, dd, a, span, strong, text, caption, figcaption";
  return [...document.querySelectorAll(texts)]
    .filter(e => e.checkVisibility() && e.textContent.trim())
    .map(e => { const style = getComputedStyle(e);
      const own = e.tagName === "text" ? style.fill : style.color;
      const [a, b] = [light(own), light(behind(e))].sort((x, y) => y - x);
      return [(a + 0.05) / (b + 0.05), e.textContent.trim().slice(0, 40)]; })
    .sort((x, y) => x[0] - y[0])[0]; }"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", ["study", "seeded"])
def test_every_text_can_be_read(browser, pages, name, scheme):
    page = opened(browser, pages / f"{name}.html", SIZES["desktop"], color_scheme=scheme)
    contrast, text = page.evaluate(CONTRAST)
    assert contrast >= 4.5, text
    page.context.close()


def test_the_page_prints(browser, pages):
    page = opened(browser, pages / "study.html", SIZES["desktop"], color_scheme="dark")
    paper = page.pdf(format="A4", print_background=True)
    assert paper.startswith(b"%PDF")
    assert len(paper) > 20_000
    assert 2 <= paper.count(b"/Type /Page\n") <= 12
    page.emulate_media(media="print")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert page.evaluate(
        "[...document.querySelectorAll('.scroll')].every(s => s.scrollHeight <= s.clientHeight + 1)"
    )
    page.context.close()


def test_tables_can_be_scrolled_with_the_keyboard(browser, pages):
    page = opened(browser, pages / "study.html", SIZES["phone"])
    for box in page.locator(".scroll").all():
        box.focus()
        assert box.evaluate("b => b === document.activeElement")
        assert box.get_attribute("aria-label")
    page.context.close()
