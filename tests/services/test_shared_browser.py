"""Several people with one browser: each sends their own report, once, and leaves nothing behind."""

import re

import pytest
from surveying import DESKTOP, PHONE, answer, counted, person, picture, says

pytestmark = pytest.mark.services

#: Everything that a page can leave in a browser, as one text.
LEFT = """async () => {
  const databases = await indexedDB.databases();
  const caches_ = await caches.keys();
  const workers = await navigator.serviceWorker.getRegistrations();
  return JSON.stringify([
    Object.entries(localStorage), Object.entries(sessionStorage), document.cookie, databases,
    caches_, workers.length, history.state, name, document.documentElement.outerHTML,
  ]);
}"""
ANSWERS = ("7.625", "8.125", "checked")


def begin(page, link):
    """Open a link and wait for the questions."""
    page.goto(link)
    page.wait_for_selector("form:not([hidden]) button")
    assert page.locator("#bytes").inner_text() == ""
    assert page.get_by_label("How many hours did you sleep last night?").input_value() == ""


def encode(page):
    """The bytes that are shown."""
    answer(page)
    page.get_by_role("button", name="Encode my answers").click()
    page.wait_for_selector("#send:enabled")
    return page.locator("#bytes").inner_text()


def send(page):
    page.get_by_role("button", name="Send the eight bytes").click()
    says(page, "Thank you")


def fails(page, survey):
    """A send that is lost on the way."""
    survey.wire.broken = True
    page.get_by_role("button", name="Send the eight bytes").click()
    says(page, "Try again")
    survey.wire.broken = False


def sent(survey):
    """The token and the bytes of each upload, in their order."""
    found = []
    for head, body in survey.wire.posts():
        token = re.search(rb"(?im)^riata-token: (\S+)", head)
        found.append((token[1].decode() if token else "", body.hex(" ")))
    return found


def left(page):
    return page.evaluate(LEFT)


@pytest.mark.parametrize("leave", ["close", "stay", "away"])
def test_bytes_that_were_not_sent_are_nobody_elses(browser, invited, leave):
    first, _ = person(browser, PHONE)
    begin(first, invited.links[0])
    hers = encode(first)
    if leave == "close":
        first.close()
    elif leave == "away":
        first.goto("about:blank")
    context = first.context
    second = context.new_page()
    begin(second, invited.links[1])
    assert hers not in left(second)
    assert hers.replace(" ", "") not in left(second)
    his = encode(second)
    assert his != hers
    send(second)
    assert sent(invited) == [(invited.tokens[1], his)]
    # she comes back: nothing has left, so she begins anew
    again = context.new_page()
    begin(again, invited.links[0])
    new = encode(again)
    send(again)
    assert sent(invited) == [(invited.tokens[1], his), (invited.tokens[0], new)]
    assert counted(invited) == 2
    context.close()


def test_bytes_that_may_have_left_are_sent_again_under_their_own_link(browser, invited):
    first, _ = person(browser, PHONE)
    begin(first, invited.links[0])
    hers = encode(first)
    fails(first, invited)
    first.close()
    second = first.context.new_page()
    begin(second, invited.links[1])
    assert hers not in left(second)
    his = encode(second)
    send(second)
    again = first.context.new_page()
    again.goto(invited.links[0])
    again.wait_for_selector("#send:enabled")
    assert not again.locator("form").is_visible()
    assert not again.locator("#anew").is_visible()  # the collector may have seen them
    assert again.locator("#bytes").inner_text() == hers
    send(again)
    assert set(sent(invited)) == {(invited.tokens[0], hers), (invited.tokens[1], his)}
    assert sent(invited)[-1] == (invited.tokens[0], hers)
    assert counted(invited) == 2
    first.context.close()


@pytest.mark.parametrize("way", ["goto", "hash", "back"])
@pytest.mark.parametrize("state", ["answered", "encoded", "failed", "sent"])
def test_another_link_in_the_same_tab_begins_anew(browser, invited, way, state):
    page, _ = person(browser, PHONE)
    if way == "back":
        begin(page, invited.links[1])
        page.evaluate("document.body.id = 'before'")
    page.goto(invited.links[0])
    page.wait_for_selector("body:not(#before) form:not([hidden]) button")
    answer(page)
    hers = encode(page) if state != "answered" else "none"
    if state == "failed":
        fails(page, invited)
    elif state == "sent":
        send(page)
    before = len(sent(invited))
    page.evaluate("document.body.id = 'before'")
    if way == "goto":
        page.goto(invited.links[1])
    elif way == "hash":
        page.evaluate("(token) => { location.hash = token; }", invited.tokens[1])
    else:
        page.evaluate("history.back()")
    page.wait_for_selector("body:not(#before) form:not([hidden]) button")
    assert page.url == invited.links[1]
    assert page.locator("#bytes").inner_text() == ""
    assert page.get_by_label("How many hours did you sleep last night?").input_value() == ""
    his = encode(page)
    assert his != hers
    send(page)
    assert sent(invited)[before:] == [(invited.tokens[1], his)]
    assert all(token == invited.tokens[0] for token, _ in sent(invited)[:before])
    page.context.close()


@pytest.mark.parametrize("mode", ["survey", "invited"])
def test_nothing_of_the_answers_is_kept(browser, request, mode):
    survey = request.getfixturevalue(mode)
    page, said = person(browser, PHONE)
    link = survey.links[0] if survey.links else survey.wire.url
    begin(page, link)
    answer(page)
    shown = encode(page)
    assert page.evaluate("localStorage.length + sessionStorage.length") == 0
    assert not any(one in left(page) for one in ANSWERS)
    send(page)
    kept = page.evaluate("JSON.stringify([Object.entries(localStorage), sessionStorage])")
    page.reload()
    page.wait_for_selector("#outgoing:not([hidden])")
    for text in (kept, left(page)):
        assert shown not in text
        assert shown.replace(" ", "") not in text
        assert not any(one in text for one in (*ANSWERS, *survey.tokens))
    assert re.fullmatch(r'\[\[\["riata [0-9a-f]{64}","arrived"\]\],\{\}\]', kept)
    assert page.context.cookies() == []
    assert said == []
    page.context.close()


@pytest.mark.parametrize("mode", ["survey", "invited"])
def test_a_person_starts_again_before_sending(browser, request, mode):
    survey = request.getfixturevalue(mode)
    page, said = person(browser, DESKTOP)
    begin(page, survey.links[0] if survey.links else survey.wire.url)
    shown = [encode(page)]
    for _ in range(3):
        page.get_by_role("button", name="Start again").click()
        page.wait_for_selector("form:not([hidden]) button")
        assert page.locator("#bytes").inner_text() == ""
        assert not any(one in left(page) for one in ("7.625", "8.125"))
        shown.append(encode(page))
    assert len(set(shown)) == 4
    assert sent(survey) == []
    send(page)
    assert [body for _, body in sent(survey)] == [shown[-1]]
    assert counted(survey) == 1
    assert said == []
    page.context.close()


def test_after_an_attempt_nobody_with_this_link_starts_again(browser, invited):
    page, _ = person(browser, PHONE)
    begin(page, invited.links[0])
    shown = encode(page)
    fails(page, invited)
    for _ in range(2):
        assert not page.locator("#anew").is_visible()
        assert page.locator("#bytes").inner_text() == shown
        page.reload()
        page.wait_for_selector("#send:enabled")
    send(page)
    assert {body for _, body in sent(invited)} == {shown}
    assert not page.locator("#anew").is_visible()
    page.context.close()


def test_another_person_answers_where_there_are_no_links(browser, survey):
    page, _ = person(browser, PHONE)
    begin(page, survey.wire.url)
    bodies = []
    for turn in range(3):
        bodies.append(encode(page))
        send(page)
        if turn == 1:  # also later
            page.reload()
            page.wait_for_selector("#outgoing:not([hidden])")
            assert bodies[-1] not in left(page)
        if turn == 0:
            picture(page, "another_phone")
        page.get_by_role("button", name="Another person answers").click()
        page.wait_for_selector("form:not([hidden]) button")
        assert bodies[-1] not in left(page)
        assert not any(one in left(page) for one in ("7.625", "8.125"))
    assert [body for _, body in sent(survey)] == bodies
    assert counted(survey) == 3
    page.context.close()


@pytest.mark.parametrize("whose", ["mine", "another"])
def test_an_attempt_of_somebody_where_there_are_no_links(browser, survey, whose):
    first, _ = person(browser, PHONE)
    begin(first, survey.wire.url)
    hers = encode(first)
    fails(first, survey)
    assert first.locator("#bytes").inner_text() == hers
    first.close()
    page = first.context.new_page()
    page.goto(survey.wire.url)
    page.wait_for_selector("#send:enabled")
    assert hers not in page.content()  # nobody knows who is looking
    before = len(sent(survey))
    if whose == "mine":
        send(page)
        expected = hers
    else:
        page.get_by_role("button", name="Another person answers").click()
        page.wait_for_selector("form:not([hidden]) button")
        assert hers.replace(" ", "") not in left(page)
        expected = encode(page)
        assert expected != hers
        send(page)
    assert [body for _, body in sent(survey)[before:]] == [expected]
    assert counted(survey) == 1
    first.context.close()


@pytest.mark.parametrize("mode", ["survey", "invited"])
def test_of_two_tabs_one_sends(browser, request, mode):
    survey = request.getfixturevalue(mode)
    page, said = person(browser, PHONE)
    tabs = [page, page.context.new_page()]
    for one in tabs:
        begin(one, survey.links[0] if survey.links else survey.wire.url)
    shown = [encode(one) for one in tabs]
    for one in tabs:  # both at once: neither click waits for an answer
        one.evaluate("document.getElementById('send').click()")
    for one in tabs:
        one.wait_for_selector("#send", state="hidden")
    ((_, body),) = sent(survey)
    assert body in shown
    assert counted(survey) == 1
    assert said == []
    page.context.close()


@pytest.mark.parametrize("mode", ["survey", "invited"])
def test_a_tab_does_not_send_other_bytes_than_those_that_may_have_left(browser, request, mode):
    survey = request.getfixturevalue(mode)
    page, _ = person(browser, PHONE)
    other = page.context.new_page()
    for one in (page, other):
        begin(one, survey.links[0] if survey.links else survey.wire.url)
    first, second = encode(page), encode(other)
    fails(page, survey)
    before = len(sent(survey))
    other.get_by_role("button", name="Send the eight bytes").click()
    other.wait_for_selector("h2:has-text('may not have arrived')")
    other.wait_for_selector("#send:enabled")
    assert len(sent(survey)) == before
    assert second not in other.content()
    send(other)
    assert {body for _, body in sent(survey)} == {first}
    assert counted(survey) == 1
    page.context.close()


@pytest.mark.parametrize(
    "broken",
    [
        "Storage.prototype.setItem = () => { throw new Error('full'); };",
        "Storage.prototype.setItem = () => {};",
        "Object.defineProperty(window, 'localStorage', { get() { throw new Error('no'); } });",
    ],
    ids=["full", "forgets", "forbidden"],
)
def test_a_browser_that_cannot_remember_sends_nothing(browser, survey, broken):
    page, _ = person(browser, PHONE)
    page.add_init_script(broken)
    begin(page, survey.wire.url)
    encode(page)
    page.get_by_role("button", name="Send the eight bytes").click()
    says(page, "does not let the page remember")
    assert sent(survey) == []
    page.context.close()


def test_a_used_link_on_another_device_hears_no(browser, invited):
    first, _ = person(browser, PHONE)
    begin(first, invited.links[0])
    encode(first)
    send(first)
    other, _ = person(browser, PHONE)  # a browser of its own
    begin(other, invited.links[0])
    shown = encode(other)
    other.get_by_role("button", name="Send the eight bytes").click()
    says(other, "did not accept")
    other.reload()
    other.wait_for_selector("#send:enabled")
    assert other.locator("#bytes").inner_text() == shown  # the same ones, if at all
    assert counted(invited) == 1
    for page in (first, other):
        page.context.close()


def test_who_goes_back_to_the_page_finds_no_answers(browser, survey):
    page, _ = person(browser, PHONE)
    begin(page, survey.wire.url)
    answer(page)
    page.goto(f"{survey.wire.url}/health")
    page.go_back()
    page.wait_for_selector("form:not([hidden]) button")
    assert page.get_by_label("How many hours did you sleep last night?").input_value() == ""
    shown = encode(page)
    page.goto(f"{survey.wire.url}/health")
    page.go_back()
    page.wait_for_selector("form:not([hidden]) button")
    assert shown not in left(page)
    page.context.close()


def test_the_key_of_the_dashboard_is_in_no_address(browser, survey):
    key = survey.dashboard.split("#")[1]
    page, said = person(browser, DESKTOP)
    asked = []
    page.on("request", lambda request: asked.append((request.url, request.all_headers())))
    page.goto(f"{survey.wire.url}/dashboard#{key}")
    page.wait_for_selector("#facts tr")
    page.goto(f"{survey.wire.url}/")
    page.wait_for_selector("form:not([hidden])")
    heads = b"".join(bytes(stream) for stream in survey.wire.sent)
    lines = re.findall(rb"(?m)^(?:GET|POST) .*$", heads)
    assert len(lines) >= 4
    assert not any(key.encode() in line for line in lines)
    with_key = [line for line in heads.split(b"\r\n") if key.encode() in line]
    assert {line.lower() for line in with_key} == {f"authorization: Bearer {key}".lower().encode()}
    assert b"referer" not in heads.lower()
    assert not any(key in url.split("#")[0] for url, _ in asked)
    assert said == []
    page.context.close()


def test_another_key_in_the_same_tab_is_tried(browser, survey):
    page, _ = person(browser, DESKTOP)
    page.goto(f"{survey.url}/dashboard#wrong")
    says(page, "cannot be")
    page.goto(survey.dashboard)
    page.wait_for_selector("#facts tr")
    page.wait_for_selector("#state:empty", state="attached")
    page.context.close()
