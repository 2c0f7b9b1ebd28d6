"""A survey as a person sees it: in a real browser, with every byte on the wire written down."""

import json
import re
import urllib.request

import pytest
from surveying import DESKTOP, PHONE, Server, answer, counted, person, picture, says

from riata.collect.directory import directory_records
from riata.local import Task

pytestmark = pytest.mark.services


@pytest.mark.parametrize("device", ["phone", "desktop"])
def test_a_person_answers_once(browser, survey, device):
    page, said = person(browser, PHONE if device == "phone" else DESKTOP)
    page.goto(survey.wire.url)
    page.wait_for_selector("form:not([hidden])")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    page.locator("summary").click()
    answer(page)
    picture(page, f"survey_{device}")
    # Pressed, not clicked: taking the picture of a whole page moves things under the pointer.
    page.get_by_role("button", name="Encode my answers").press("Enter")
    page.wait_for_selector("#send:enabled")
    shown = page.locator("#bytes").inner_text()
    assert re.fullmatch(r"([0-9a-f]{2} ){7}[0-9a-f]{2}", shown)
    assert survey.wire.posts() == []  # nothing has left yet
    assert page.locator("#questions input").count() == 0
    picture(page, f"outgoing_{device}")
    assert counted(survey) == 0
    page.get_by_role("button", name="Send the eight bytes").press("Enter")
    says(page, "Thank you")
    ((head, body),) = survey.wire.posts()
    assert body.hex(" ") == shown
    assert b"content-length: 8\r\n" in head.lower() + b"\r\n"
    everything = b"".join(bytes(stream) for stream in survey.wire.sent)
    for secret in (b"7.625", b"8.125", b"Quedlinburg", b"coffee", b"hours", b"cookie"):
        assert secret not in everything
    assert counted(survey) == 1
    assert page.locator("#bytes").inner_text() == shown
    # a reload shows that somebody answered, and sends nothing
    page.reload()
    page.wait_for_selector("#outgoing:not([hidden])")
    assert page.locator("#bytes").inner_text() == ""
    assert not page.locator("#send").is_visible()
    assert not page.locator("#questions").is_visible()
    assert len(survey.wire.posts()) == counted(survey) == 1
    (seed,) = directory_records(survey.store, survey.task).seeds
    assert f"{int(seed):016x}" == shown.replace(" ", "")
    assert said == []
    page.context.close()


def test_a_send_that_fails_is_repeated_with_the_same_bytes(browser, survey):
    page, _ = person(browser, PHONE)
    page.goto(survey.wire.url)
    page.wait_for_selector("form:not([hidden])")
    answer(page)
    page.get_by_role("button", name="Encode my answers").click()
    survey.wire.broken = True
    page.get_by_role("button", name="Send the eight bytes").click()
    says(page, "Try again")
    assert counted(survey) == 0
    page.reload()  # even then
    page.wait_for_selector("#send:enabled")
    survey.wire.broken = False
    page.get_by_role("button", name="Send the eight bytes").click()
    says(page, "Thank you")
    bodies = {body for _, body in survey.wire.posts()}
    assert len(bodies) == 1
    assert len(survey.wire.posts()) >= 2
    assert counted(survey) == 1
    page.context.close()


def test_two_quick_clicks_send_one_report_and_a_reload_sends_none(browser, survey):
    page, said = person(browser, PHONE)
    page.goto(survey.wire.url)
    page.wait_for_selector("form:not([hidden])")
    answer(page)
    page.get_by_role("button", name="Encode my answers").dblclick()
    page.wait_for_selector("#send:enabled")
    assert survey.wire.posts() == []  # the second click was not for the button that sends
    shown = page.locator("#bytes").inner_text()
    page.get_by_role("button", name="Send the eight bytes").dblclick()
    # and as fast as a program can, whatever the page does in between
    page.evaluate("for (let i = 0; i < 5; i++) document.getElementById('send').click()")
    says(page, "Thank you")
    page.evaluate("for (let i = 0; i < 5; i++) document.getElementById('send').click()")
    for _ in range(2):
        page.reload()
        page.wait_for_selector("#outgoing:not([hidden])")
        page.evaluate("for (let i = 0; i < 5; i++) document.getElementById('send').click()")
        page.wait_for_timeout(300)
    ((_, body),) = survey.wire.posts()
    assert body.hex(" ") == shown
    assert counted(survey) == 1
    assert said == []
    page.context.close()


def test_a_reload_while_it_is_sent_counts_once(browser, survey):
    page, _ = person(browser, PHONE)
    page.goto(survey.wire.url)
    page.wait_for_selector("form:not([hidden])")
    answer(page)
    page.get_by_role("button", name="Encode my answers").click()
    page.wait_for_selector("#send:enabled")
    page.evaluate("document.getElementById('send').click(); location.reload()")
    page.wait_for_selector("#outgoing:not([hidden]), form:not([hidden])")
    if page.locator("form").is_visible():  # nothing had left, and nothing was kept
        assert survey.wire.posts() == []
        answer(page)
        page.get_by_role("button", name="Encode my answers").click()
        page.wait_for_selector("#send:enabled")
    if page.locator("#send").is_visible():  # it did not hear that they arrived, if they did
        page.get_by_role("button", name="Send the eight bytes").click()
        says(page, "Thank you")
    assert len({body for _, body in survey.wire.posts()}) == 1
    assert counted(survey) == 1
    page.context.close()


HOSTILE = r"""
title = "<img src=x onerror='document.title=1'><script>document.title=2</script>"
kind = "linear"
epsilon = 2.0
[[features]]
name = "lastChild"
question = "</label><script>document.title=3</script> {low} ${1+1}"
kind = "number"
bounds = [0, 24]
[[features]]
name = "__proto__"
kind = "yes-no"
[[features]]
name = "replaceChildren"
question = "\" onfocus=alert(1) autofocus x=\""
kind = "choice"
choices = ["<b>bold</b>", "javascript:alert(1)"]
[target]
name = "onsubmit"
question = "javascript:alert(1)//"
kind = "number"
bounds = [0, 10]
"""


def test_a_tasks_own_text_is_only_text(browser, tmp_path):
    path = tmp_path / "task.toml"
    path.write_text(HOSTILE, encoding="utf-8")
    server = Server(path, tmp_path / "store", "--people", "10")
    columns = [{"name": "<svg onload=alert(1)>", "value": 1.0, "error": 0.1, "reach": 1.0}]
    model = {"reports": 1, "signal": True, "columns": columns}
    (tmp_path / "store" / "model.json").write_text(json.dumps(model))
    page, said = person(browser, PHONE)
    dialogs = []
    page.on("dialog", lambda dialog: (dialogs.append(dialog.message), dialog.dismiss()))
    page.goto(server.url)
    page.wait_for_selector("form:not([hidden])")
    title = Task.load(path).title
    assert page.title() == page.locator("h1").inner_text() == title
    assert page.locator("img, main script, b").count() == 0
    page.get_by_label("document.title=3").fill("7")
    page.get_by_label("<b>bold</b>").check()
    page.get_by_label("javascript:alert(1)//").fill("3")
    page.get_by_role("button", name="Encode my answers").click()
    page.wait_for_selector("#send:enabled")
    page.get_by_role("button", name="Send the eight bytes").click()
    says(page, "Thank you")
    page.goto(server.dashboard)
    page.wait_for_selector("#plot svg")
    assert page.title() == title
    assert "1 report of 10 expected" in page.locator("#progress").inner_text()
    assert page.locator("#plot svg svg, img, main script").count() == 0
    assert dialogs == said == []
    page.context.close()
    assert server.stop() == ""


def test_no_page_is_shown_inside_another_and_no_form_is_sent(browser, survey):
    page, said = person(browser, DESKTOP)
    page.goto(survey.url)
    page.wait_for_selector("form:not([hidden])")
    # even if the page's own code failed, the browser would not put answers into an address
    page.evaluate("document.getElementById('questions').onsubmit = null")
    answer(page)
    page.evaluate("document.querySelector('form button').click()")
    page.wait_for_timeout(300)
    assert page.url == f"{survey.url}/"
    assert any("form-action" in line for line in said)
    for path in ("/", "/dashboard"):
        page.goto("about:blank")
        page.set_content(f'<iframe src="{survey.url}{path}"></iframe>')
        page.wait_for_timeout(300)
        assert page.frames[-1].locator("#state").count() == 0
    page.context.close()


def test_the_keyboard_is_enough_and_every_field_has_a_name(browser, survey):
    page, said = person(browser, DESKTOP)
    page.goto(survey.url)
    page.wait_for_selector("form:not([hidden])")
    for field in page.locator("input").all():
        assert field.evaluate("f => f.labels.length > 0 || f.hasAttribute('aria-label')")
    page.locator("summary").focus()
    page.keyboard.press("Tab")
    page.keyboard.type("7")
    page.keyboard.press("Tab")
    page.keyboard.press("ArrowUp")
    for _ in range(3):
        page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    page.locator("form button").focus()
    page.keyboard.press("Enter")
    page.wait_for_selector("#send:enabled")
    assert page.evaluate("document.activeElement.id") == "send"
    page.keyboard.press("Enter")
    says(page, "Thank you")
    assert counted(survey) == 1
    assert said == []
    page.context.close()


def test_another_language(browser, survey):
    page, said = person(browser, PHONE, locale="de-DE")
    page.goto(survey.url)
    page.wait_for_selector("form:not([hidden])")
    assert page.evaluate("document.documentElement.lang") == "de"
    assert page.get_by_role("button", name="Meine Antworten").count() == 1
    assert said == []
    page.context.close()


@pytest.mark.parametrize("device", ["phone", "desktop"])
def test_the_dashboard_counts_and_shows_the_model(browser, survey, device):
    columns = [
        {"name": "hours", "value": 0.21, "error": 0.05, "reach": 12.0},
        {"name": "coffee", "value": 0.9, "error": 0.5, "reach": 0.5},
        {"name": "town=Zanzibar", "value": -0.4, "error": 0.6, "reach": 1.0},
    ]
    model = {"reports": 640, "signal": True, "columns": columns}
    (survey.store / "model.json").write_text(json.dumps(model))
    page, said = person(browser, PHONE if device == "phone" else DESKTOP)
    for n in range(640):
        body = (n * 0x9E3779B97F4A7C15 % 2**64).to_bytes(8, "big")
        kind = {"Content-Type": "application/octet-stream"}
        url = f"{survey.url}/tasks/{survey.task.id}/reports"
        urllib.request.urlopen(urllib.request.Request(url, body, kind))
    page.goto(survey.dashboard)
    page.wait_for_selector("#plot svg")
    assert "640 reports of 1,000 expected" in page.locator("#progress").inner_text()
    assert page.locator("#plot circle").count() == 3
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    picture(page, f"dashboard_{device}")
    assert said == []
    page.goto(f"{survey.url}/dashboard#wrong")
    page.reload()
    says(page, "cannot be")
    page.context.close()
