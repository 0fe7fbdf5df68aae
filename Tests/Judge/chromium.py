"""A real headless browser, controlled through its DevTools protocol."""

import base64
import contextlib
import json
import os
import shutil
import subprocess
import time

import websocket

from browser import TIMEOUT

PROGRAM = shutil.which("chromium")


class NoPage(AssertionError):
    """The page disappeared during a query."""


class Chromium:
    def __init__(self, folder, dark=False, environment=None, preferences=None):
        """Starts the browser. With an environment, it opens a window on that environment's display."""
        self.folder = folder
        self.number = 0
        self.events = []
        arguments = [PROGRAM, "--remote-debugging-port=0", "--remote-allow-origins=*", "--no-first-run",
                     f"--user-data-dir={folder}", "--window-size=900,600", "--disable-gpu", "--disable-background-networking"]
        if environment is None:
            arguments.append("--headless=new")
        if os.geteuid() == 0:
            arguments.append("--no-sandbox")
        if preferences:
            os.makedirs(os.path.join(folder, "Default"))
            with open(os.path.join(folder, "Default/Preferences"), "w", encoding="utf-8") as file:
                json.dump(preferences, file)
        self.process = subprocess.Popen([*arguments, "about:blank"], stdin=subprocess.DEVNULL, env=environment,
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        port, path = self.until(self.active_port)
        self.socket = websocket.create_connection(f"ws://127.0.0.1:{port}{path}", timeout=TIMEOUT)
        self.session = None
        page = next(t for t in self.call("Target.getTargets")["targetInfos"] if t["type"] == "page")
        self.session = self.call("Target.attachToTarget", targetId=page["targetId"], flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network", "Accessibility"):
            self.call(domain + ".enable")
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])

    def active_port(self):
        path = os.path.join(self.folder, "DevToolsActivePort")
        if os.path.exists(path):
            lines = open(path, encoding="ascii").read().split("\n")
            return lines if len(lines) == 2 else None

    def until(self, look):
        """Returns the result of `look` as soon as there is one."""
        end = time.monotonic() + TIMEOUT
        while time.monotonic() < end:
            # Between two pages, the browser has no page to query.
            with contextlib.suppress(NoPage):
                if found := look():
                    return found
            time.sleep(0.05)
        raise AssertionError(f"never came to pass: {look}")

    def wait_for(self, condition):
        """Waits until the page is complete and the JavaScript condition is true. An incomplete page can have an element
        without what the element contains."""
        self.until(lambda: self.run(f"document.readyState=='complete'&&!!({condition})"))

    def call(self, method, **parameters):
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        self.socket.send(json.dumps(message))
        while True:
            answer = json.loads(self.socket.recv())
            if answer.get("id") == self.number:
                if "error" in answer:
                    wrong = f"{method}: {answer['error']}"
                    raise NoPage(wrong) if "navigated or closed" in wrong else AssertionError(wrong)
                return answer["result"]
            self.events.append(answer)

    def run(self, script, gesture=False):
        """Returns the value of a JavaScript expression in the page; `gesture` simulates a user's action."""
        answer = self.call("Runtime.evaluate", expression=script, returnByValue=True, userGesture=gesture)
        if "exceptionDetails" in answer:
            raise AssertionError(answer["exceptionDetails"])
        return answer["result"].get("value")

    def open(self, url):
        self.call("Page.navigate", url=url)

    def complaints(self):
        """Returns the browser's complaints: violations of the policy, failed requests and exceptions."""
        self.run("0")
        return [event for event in self.events
                if event.get("method") == "Runtime.exceptionThrown"
                or event.get("method") == "Log.entryAdded" and event["params"]["entry"]["level"] == "error"]

    def requested(self):
        """Returns the addresses of all requests."""
        self.run("0")
        return [event["params"]["request"]["url"] for event in self.events
                if event.get("method") == "Network.requestWillBeSent"]

    def history(self):
        """Returns the addresses that the user can go back to."""
        return [entry["url"] for entry in self.call("Page.getNavigationHistory")["entries"]]

    def read_aloud(self):
        """Returns what a screen reader gets: (role, name) of all elements that are not ignored."""
        nodes = self.call("Accessibility.getFullAXTree")["nodes"]
        return [(node["role"]["value"], node.get("name", {}).get("value", "")) for node in nodes
                if not node.get("ignored")]

    def resize(self, width, height):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)

    def picture(self, path):
        with open(path, "wb") as file:
            file.write(base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"]))

    def close(self):
        try:
            self.session = None
            self.call("Browser.close")
        except (OSError, websocket.WebSocketException):
            self.process.kill()
        self.socket.close()
        self.process.wait(TIMEOUT)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
