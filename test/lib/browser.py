# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Debian's Chromium without a window, driven by the DevTools protocol; it reaches nothing but 127.0.0.1."""

import base64
import contextlib
import functools
import http.server
import json
import os
import threading

from harness import clean_environment, need_command, scratch, started, wait_until

SIZE = "1600,900"
TIMEOUT_S = 60


@contextlib.contextmanager
def served(*folders):
    """The address of a server that has the files of these folders, the first one's first."""
    class Handler(http.server.SimpleHTTPRequestHandler):
        def translate_path(self, path):
            places = [http.server.SimpleHTTPRequestHandler.translate_path(self._in(folder), path) for folder in folders]
            return next((place for place in places if os.path.exists(place)), places[0])

        def _in(self, folder):
            self.directory = str(folder)
            return self

        def log_message(self, *arguments):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Handler, directory=str(folders[0])))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()


class Page:
    """A tab, by the pipe on the browser's descriptors 3 and 4; messages end with NUL."""

    def __init__(self, to_browser, from_browser):
        self.to_browser, self.from_browser = to_browser, from_browser
        self.n_sent, self.session, self.rest = 0, None, b""
        self.events = []  # what the browser reported unasked, of the domains that are enabled
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]

    def _receive(self):
        while b"\0" not in self.rest:
            data = os.read(self.from_browser, 1 << 20)
            assert data, "the browser has gone"
            self.rest += data
        message, _, self.rest = self.rest.partition(b"\0")
        return json.loads(message)

    def call(self, method, **parameters):
        self.n_sent += 1
        message = {"id": self.n_sent, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self.to_browser, data):]
        while True:
            reply = self._receive()
            if reply.get("id") == self.n_sent:
                assert "error" not in reply, f"{method}: {reply['error']}"
                return reply["result"]
            if "method" in reply:
                self.events.append(reply)

    def evaluate(self, expression):
        """The value of a JavaScript expression, which is awaited."""
        result = self.call("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in result, f"{expression}: {result['exceptionDetails']}"
        return result["result"].get("value")

    def open(self, address, ready):
        """Returns when the expression is true there."""
        self.call("Page.navigate", url=address)
        wait_until(lambda: self.evaluate(ready), f"{ready} in {address}", TIMEOUT_S)

    def screenshot(self, **parameters):
        """The bytes of a PNG image."""
        return base64.b64decode(self.call("Page.captureScreenshot", format="png", **parameters)["data"])


@contextlib.contextmanager
def browser_page():
    chromium = need_command("chromium")
    options = ["--headless=new", "--remote-debugging-pipe", f"--user-data-dir={scratch('browser')}", f"--window-size={SIZE}",
               "--no-first-run", "--disable-gpu", "--disable-dev-shm-usage", "--disable-extensions",
               "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"]
    if os.geteuid() == 0:
        options.append("--no-sandbox")  # which needs another user
    its_in, to_browser = os.pipe()
    from_browser, its_out = os.pipe()

    def place():
        # First out of the way: one of them may be where the other belongs.
        ends = os.dup(its_in), os.dup(its_out)
        for end, number in zip(ends, (3, 4)):
            os.dup2(end, number)

    with open(scratch("log") / "chromium", "w") as log:
        with started([chromium, *options], clean_environment(), preexec_fn=place, close_fds=False, stdout=log, stderr=log,
                     start_new_session=True):
            os.close(its_in)
            os.close(its_out)
            yield Page(to_browser, from_browser)
    os.close(to_browser)
    os.close(from_browser)
