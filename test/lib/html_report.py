# SPDX-License-Identifier: Apache-2.0 OR MIT
"""The page that `torsh html` writes: its data, and the page in a browser, where it may request nothing else."""

import base64
import contextlib
import hashlib
import json
import re

from harness import expect_equal, run, scratch, TORSH
from browser import browser_page, wait_until

DATA = re.compile(r'<script type="application/json" id="data">(.*?)</script>', re.S)
READY = "document.documentElement?.dataset.ready === 'true'"
SAYS_SO = ("Runtime.exceptionThrown", "Log.entryAdded", "Runtime.consoleAPICalled")
BYTES_MAX = 20 << 20


def written(recording, *arguments):
    """The path of the page of a recording."""
    page = scratch("page") / "report.html"
    result = run([TORSH, "html", recording, "-o", page, *arguments])
    expect_equal(result.returncode, 0, f"status of torsh html ({result.stderr.decode()})")
    assert page.stat().st_size <= BYTES_MAX, f"the page has {page.stat().st_size} bytes"
    return page


def data_of(page):
    """The document in a page, as JSON has it: texts are numbers."""
    (document,) = DATA.findall(page.read_text())
    return json.loads(document)


def expect_sealed(page):
    """Nothing but the script and the style that the page's policy names by their hashes can run in it."""
    text = page.read_text()
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', text)[1]
    assert policy.startswith("default-src 'none'"), policy
    for kind, element in (("script", '<script type="module">(.*?)</script>'), ("style", "<style>(.*?)</style>")):
        (body,) = re.findall(element, text, re.S)
        wanted = f"{kind}-src 'sha256-{base64.b64encode(hashlib.sha256(body.encode()).digest()).decode()}'"
        assert wanted in policy, f"{wanted} is not in {policy}"


def total(document, tree, weight):
    """Bytes and blocks of all nodes of a tree."""
    columns = document["trees"][tree]["weights"].get(weight, {"bytes": [], "blocks": []})
    return sum(columns["bytes"]), sum(columns["blocks"])


class Report:
    """The page in a browser."""

    def __init__(self, page, address):
        self.page, self.address, self.n_opened = page, address, 0
        for domain in ("Runtime", "Log", "Network", "Page"):
            page.call(f"{domain}.enable")

    def open(self, place="", width=1280, height=900, is_dark=False):
        self.page.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        self.page.call("Emulation.setEmulatedMedia", features=[
            {"name": "prefers-color-scheme", "value": "dark" if is_dark else "light"}])
        self.n_opened += 1
        self.page.open(f"{self.address}?{self.n_opened}#{place}", READY)

    def js(self, expression):
        return self.page.evaluate(expression)

    def click(self, selector):
        assert self.js(f"!!document.querySelector({json.dumps(selector)})"), f"there is no {selector}"
        self.js(f"document.querySelector({json.dumps(selector)}).click()")

    def type(self, selector, text):
        self.js(f"(box => {{ box.value = {json.dumps(text)}; box.dispatchEvent(new Event('input')); }})"
                f"(document.querySelector({json.dumps(selector)}))")

    def press(self, key):
        for kind in ("keyDown", "keyUp"):
            self.page.call("Input.dispatchKeyEvent", type=kind, key=key, text=key if kind == "keyDown" and len(key) == 1 else "")

    def texts(self, selector):
        return self.js(f"[...document.querySelectorAll({json.dumps(selector)})].map(one => one.textContent)")

    def until(self, expression):
        wait_until(lambda: self.js(expression), expression)

    def screenshot(self, path):
        self.js("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(self.page.screenshot())

    def expect_quiet(self):
        """It printed nothing on the console, and requested for nothing but itself."""
        printed = [event["params"] for event in self.page.events if event["method"] in SAYS_SO]
        expect_equal(printed, [], "what the page printed")
        requested = {event["params"]["request"]["url"] for event in self.page.events if event["method"] == "Network.requestWillBeSent"}
        foreign = [url for url in requested if not url.startswith((self.address, "data:"))]
        expect_equal(foreign, [], "what the page requested")


def opened(path):
    """The page of a file in a browser, which has to stay quiet."""
    return opened_at(f"file://{path}")


@contextlib.contextmanager
def opened_at(address):
    """The page at an address; it may request what is below that."""
    with browser_page() as page:
        report = Report(page, address)
        yield report
        report.expect_quiet()
