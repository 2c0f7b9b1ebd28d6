"""A collector behind a wire that writes everything down, and people with browsers."""

import contextlib
import os
import re
import shutil
import socket
import threading
import urllib.request
from pathlib import Path

import pytest

from riata.collect.tokens import Tokens
from riata.local import Task

from collecting import Server, free_port

__all__ = ["Server"]

TEXT = """
title = "Sleep and mood"
kind = "linear"
epsilon = 2.0
[[features]]
name = "hours"
question = "How many hours did you sleep last night?"
kind = "number"
bounds = [0, 24]
[[features]]
name = "coffee"
question = "Did you drink coffee yesterday?"
kind = "yes-no"
[[features]]
name = "town"
question = "Where do you live?"
kind = "choice"
choices = ["Zanzibar", "Quedlinburg", "Elsewhere"]
[target]
name = "mood"
question = "How do you feel today, from 0 to 10?"
kind = "number"
bounds = [0, 10]
"""
#: Where docs take their pictures from; written anew when RIATA_PICTURES is set.
PICTURES = Path(__file__).parents[2] / "docs" / "_static"
#: Milliseconds after which a page hangs, however slow and busy the machine is.
PATIENCE = 300_000
PHONE, DESKTOP = {"width": 390, "height": 844}, {"width": 1200, "height": 900}


class Wire:
    """Stands between browser and collector and writes down what the browser sends."""

    def __init__(self, port):
        self.to, self.port = port, free_port()
        self.sent, self.broken = [], False
        self.listener = socket.create_server(("127.0.0.1", self.port))
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            try:
                person, _ = self.listener.accept()
            except OSError:
                return
            collector = socket.create_connection(("127.0.0.1", self.to))
            written = bytearray()
            self.sent.append(written)
            threading.Thread(
                target=self._pass, args=(person, collector, written), daemon=True
            ).start()
            threading.Thread(target=self._pass, args=(collector, person, None), daemon=True).start()

    def _pass(self, source, sink, written):
        try:
            while data := source.recv(65536):
                if written is not None:
                    written += data
                    if self.broken and b"POST" in data:
                        break  # the connection is lost before anything has arrived
                sink.sendall(data)
        except OSError:
            pass
        for one in (source, sink):
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}"

    def posts(self):
        """The head and the body of each upload."""
        found = []
        for stream in self.sent:
            for part in re.split(rb"(?=POST |GET )", bytes(stream)):
                if part.startswith(b"POST "):
                    found.append(tuple(part.split(b"\r\n\r\n", 1)))
        return found


def chromium():
    """A browser, closed at the end."""
    playwright = pytest.importorskip("playwright.sync_api")
    program = shutil.which("chromium")
    assert program, "tests/services/install.sh installs it"
    with playwright.sync_playwright() as p:
        browser = p.chromium.launch(executable_path=program, args=["--no-sandbox", "--disable-gpu"])
        yield browser
        browser.close()


def serve(folder, invited=False):
    """The survey, for everybody or for people with links."""
    path = folder / "task.toml"
    path.write_text(TEXT, encoding="utf-8")
    task = Task.load(path)
    options = ["--tokens", folder / "key"] if invited else []
    tokens = Tokens.at(folder / "key", task.id).make(9) if invited else []
    server = Server(path, folder / "store", "--people", "1000", *options)
    server.task, server.store, server.tokens = task, folder / "store", tokens
    server.wire = Wire(server.port)
    server.links = [f"{server.wire.url}/#{token}" for token in tokens]
    yield server
    server.wire.listener.close()
    assert server.stop() == ""


def counted(server):
    text = urllib.request.urlopen(f"{server.url}/metrics").read().decode()
    return int(re.search(r"^riata_reports (\d+)$", text, re.M)[1])


def person(browser, size, **more):
    """A new person's browser, and what its console says."""
    context = browser.new_context(viewport=size, **more)
    context.set_default_timeout(PATIENCE)
    page, said = context.new_page(), []
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda problem: said.append(str(problem)))
    return page, said


def answer(page):
    page.get_by_label("How many hours did you sleep last night?").fill("7.625")
    page.get_by_role("group", name="Did you drink coffee yesterday?").get_by_label("Yes").check()
    page.get_by_label("Quedlinburg").check()
    page.get_by_label("How do you feel today, from 0 to 10?").fill("8.125")


def says(page, text):
    from playwright.sync_api import expect

    expect(page.locator("#state")).to_contain_text(text, timeout=PATIENCE)


def picture(page, name):
    shot = page.screenshot(full_page=True)
    page.wait_for_timeout(500)  # until the page has its old size again
    assert len(shot) > 5_000
    if os.environ.get("RIATA_PICTURES"):
        (PICTURES / f"collect_{name}.png").write_bytes(shot)
