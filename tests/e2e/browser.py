"""A real Chromium without a window, driven over its DevTools pipe, for tests of berth-web.

    with Browser() as browser:
        page = browser.open(url, width=390, dark=True)
        page.until("document.querySelector('h1')")
        page.value("document.title")
        page.complaints      what it wrote on its console, and requests that failed
"""
import json
import os
import shutil
import subprocess
import sys
import tempfile

LIMIT_MS = 120000


def program():
    """Ubuntu's package of that name only leads to a snap, which offers no pipe."""
    for name in ("chromium", "chromium-browser", "google-chrome"):
        path = shutil.which(name)
        if path and "/snap/" not in os.path.realpath(path) and b"snap" not in _head(path):
            return path
    return None


def _head(path):
    with open(path, "rb") as f:
        head = f.read(4096)
    return head if head.startswith(b"#!") and b"/snap/bin" in head else b""


class Browser:
    def __enter__(self):
        self.folder = tempfile.mkdtemp(prefix="berth-browser.")
        to_it, self.to = os.pipe()
        self.back, from_it = os.pipe()
        args = [program(), "--headless=new", "--remote-debugging-pipe", "--no-sandbox",
                "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run", "--disable-extensions",
                "--disable-background-networking", "--disable-component-update", "--mute-audio",
                "--user-data-dir=" + self.folder, "about:blank"]

        def descriptors():
            # First above both targets, so that neither is overwritten before it is used.
            a, b = os.dup2(to_it, 200), os.dup2(from_it, 201)
            os.dup2(a, 3)
            os.dup2(b, 4)

        self.process = subprocess.Popen(args, preexec_fn=descriptors, close_fds=False,
                                        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                        stderr=subprocess.DEVNULL)
        os.close(to_it)
        os.close(from_it)
        self.unread, self.last, self.pages = b"", 0, {}
        return self

    def __exit__(self, *_):
        try:
            self.ask("Browser.close")
        except (OSError, EOFError):
            pass
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _read(self):
        while b"\0" not in self.unread:
            more = os.read(self.back, 1 << 16)
            if not more:
                raise EOFError("the browser has gone")
            self.unread += more
        line, self.unread = self.unread.split(b"\0", 1)
        return json.loads(line)

    def ask(self, method, params=None, session=None):
        self.last += 1
        question = {"id": self.last, "method": method, "params": params or {}}
        if session:
            question["sessionId"] = session
        os.write(self.to, json.dumps(question).encode() + b"\0")
        while True:
            answer = self._read()
            if answer.get("id") == self.last:
                if "error" in answer:
                    raise AssertionError(f"{method}: {answer['error']}")
                return answer["result"]
            page = self.pages.get(answer.get("sessionId"))
            if page:
                page.note(answer)

    def open(self, url, width=1400, height=900, dark=False, script=True):
        target = self.ask("Target.createTarget", {"url": "about:blank"})["targetId"]
        session = self.ask("Target.attachToTarget", {"targetId": target, "flatten": True})["sessionId"]
        page = Page(self, session, target)
        self.pages[session] = page
        for domain in ("Page", "Runtime", "Log", "Network"):
            page.ask(domain + ".enable")
        page.ask("Emulation.setDeviceMetricsOverride",
                 {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600})
        page.ask("Emulation.setEmulatedMedia", {"features": [
            {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]})
        page.ask("Emulation.setScriptExecutionDisabled", {"value": not script})
        page.go(url)
        return page


class Page:
    def __init__(self, browser, session, target):
        self.browser, self.session, self.target = browser, session, target
        self.complaints, self.loaded = [], False

    def ask(self, method, params=None):
        return self.browser.ask(method, params, self.session)

    def note(self, event):
        params = event["params"]
        if event["method"] == "Runtime.consoleAPICalled" and params["type"] in ("error", "warning"):
            self.complaints.append(str(params["args"]))
        elif event["method"] == "Runtime.exceptionThrown":
            self.complaints.append(str(params["exceptionDetails"]))
        elif event["method"] == "Log.entryAdded" and params["entry"]["level"] in ("error", "warning"):
            self.complaints.append(params["entry"]["text"] + " " + params["entry"].get("url", ""))
        elif event["method"] == "Page.loadEventFired":
            self.loaded = True

    def go(self, url):
        self.loaded = False
        answer = self.ask("Page.navigate", {"url": url})
        if "errorText" in answer:
            raise AssertionError(f"{url}: {answer['errorText']}")
        while not self.loaded:
            event = self.browser._read()
            if event.get("sessionId") == self.session and "method" in event:
                self.note(event)

    def value(self, expression):
        """The expression's value in the page; a promise is awaited."""
        answer = self.ask("Runtime.evaluate", {"expression": expression, "awaitPromise": True,
                                               "returnByValue": True})
        if "exceptionDetails" in answer:
            raise AssertionError(f"{expression}: {answer['exceptionDetails']}")
        return answer["result"].get("value")

    def until(self, expression):
        """Wait until it has a value, and return that."""
        look = """new Promise((resolve) => {
            const began = Date.now();
            (function look() {
                const found = (() => { try { return (%s); } catch (e) { return null; } })();
                if (found || Date.now() - began > %d) resolve(found ? String(found) : null);
                else setTimeout(look, 15);
            })();
        })""" % (expression, LIMIT_MS)
        while True:
            try:
                found = self.value(look)
                break
            except AssertionError as e:
                # The page under observation was left: the next one is polled.
                if "navigated or closed" not in str(e) and "context was destroyed" not in str(e):
                    raise
        if found is None:
            text = self.value("document.body.innerText")
            raise AssertionError(f"never: {expression}\nthe page:\n{text}\n{self.complaints}")
        return found

    def text(self, selector):
        return self.value("document.querySelector(%s).innerText" % json.dumps(selector))

    def close(self):
        self.browser.ask("Target.closeTarget", {"targetId": self.target})


if __name__ == "__main__":
    sys.exit(0 if program() else 1)
