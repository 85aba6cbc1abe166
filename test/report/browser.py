"""Debian's Chromium without a window, driven by chromedriver: WebDriver over HTTP.

    with browser.Browser(space) as page:
        page.open(path)
        page.run("return document.title")
        page.log                                # what it has complained of
"""

import base64
import json
import shutil
import urllib.error
import urllib.request

from harness import workspace

PROGRAMS = ("chromium", "chromedriver")


def require():
    """Raise Unavailable where there is no browser."""
    workspace.require_program(*PROGRAMS)


class Browser:
    def __init__(self, space):
        self.space = space

    def __enter__(self):
        self.process, self.port = self.space.serve(
            "chromedriver", lambda port: [shutil.which("chromedriver"), f"--port={port}"],
            lambda process, port: self._ready(port))
        # the page is ours, and containers let nobody have the namespaces of a sandbox
        options = {"binary": shutil.which("chromium"),
                   "args": ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
                            "--hide-scrollbars", f"--user-data-dir={self.space.directory}/chromium"]}
        session = self._ask("POST", "/session", {"capabilities": {"alwaysMatch": {
            "browserName": "chrome", "goog:chromeOptions": options, "goog:loggingPrefs": {"browser": "ALL"}}}})
        self.session = f"/session/{session['sessionId']}"
        return self

    def __exit__(self, *exc_info):
        try:
            self._ask("DELETE", self.session)
        finally:
            self.space.stop(self.process)

    def _ready(self, port):
        try:
            self.port = port
            return self._ask("GET", "/status")["ready"]
        except OSError:
            return False

    def _ask(self, method, path, body=None):
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}{path}", method=method,
                                         data=None if body is None else json.dumps(body).encode(),
                                         headers={"Content-Type": "application/json"})
        try:
            with urllib.request.urlopen(request, timeout=90) as answer:
                return json.load(answer)["value"]
        except urllib.error.HTTPError as error:
            raise workspace.Failed(f"{path}: {json.load(error)['value']['message'].splitlines()[0]}") from None

    def open(self, path):
        self._ask("POST", self.session + "/url", {"url": f"file://{path}"})

    def run(self, script, *arguments):
        """What a script returns."""
        return self._ask("POST", self.session + "/execute/sync", {"script": script, "args": list(arguments)})

    def devtools(self, command, **parameters):
        """A command of the DevTools protocol."""
        return self._ask("POST", self.session + "/goog/cdp/execute", {"cmd": command, "params": parameters})

    def shape(self, width, height=900, scheme="light"):
        """As if on a screen of this size, and with these colours."""
        self.devtools("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        self.devtools("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])

    def press(self, key):
        """A key, by the code that WebDriver has for it."""
        self._ask("POST", self.session + "/actions", {"actions": [{"type": "key", "id": "keyboard", "actions": [
            {"type": "keyDown", "value": key}, {"type": "keyUp", "value": key}]}]})

    def screenshot(self, path, whole=True):
        data = self.devtools("Page.captureScreenshot", format="png", captureBeyondViewport=whole,
                             **({"clip": self._all()} if whole else {}))["data"]
        path.write_bytes(base64.b64decode(data))

    def _all(self):
        width, height = self.run("return [innerWidth, document.documentElement.scrollHeight]")
        return {"x": 0, "y": 0, "width": width, "height": height, "scale": 1}

    def print(self):
        """The page as it is printed: PDF."""
        return base64.b64decode(self._ask("POST", self.session + "/print", {"background": True}))

    @property
    def log(self):
        """What has come to the console since this was last asked."""
        return [entry["message"] for entry in self._ask("POST", self.session + "/se/log", {"type": "browser"})]
