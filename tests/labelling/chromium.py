"""A headless Chromium that is driven through its debugging pipe: real keys, no driver, no download."""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any, Self

from tests.machine import lacks

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
OPTIONS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--remote-debugging-pipe",
)
_PATIENCE = 120.0


def found() -> str:
    """The browser of this machine."""
    given = os.environ.get("EVALBUDGET_CHROMIUM")
    program = given or next(filter(None, map(shutil.which, NAMES)), None)
    if program is None:
        lacks(f"none of {', '.join(NAMES)} is installed; EVALBUDGET_CHROMIUM names another one")
    return program


class Chromium:
    """One browser with any number of tabs.

    Args:
        profile: an empty folder of its own.
    """

    def __init__(self, profile: Path) -> None:
        program = found()
        ours_in, theirs_out = os.pipe()
        theirs_in, ours_out = os.pipe()
        # the browser reads commands from descriptor 3 and writes to 4
        command = f'exec "$@" 3<&{theirs_in} 4>&{theirs_out}'
        self._process = subprocess.Popen(
            ["bash", "-c", command, "bash", program, *OPTIONS, f"--user-data-dir={profile}", "about:blank"],
            pass_fds=(theirs_in, theirs_out),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(theirs_in)
        os.close(theirs_out)
        self._in, self._out = os.fdopen(ours_in, "rb"), os.fdopen(ours_out, "wb")
        self._left = b""
        self._number = 0
        self.logged: list[str] = []
        self.requested: list[str] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._out.close()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._in.close()

    def send(self, method: str, tab: str | None = None, **params: object) -> Any:
        self._number += 1
        message = {"id": self._number, "method": method, "params": params} | (
            {"sessionId": tab} if tab else {}
        )
        self._out.write(json.dumps(message).encode() + b"\0")
        self._out.flush()
        while True:
            answer = self._receive()
            if answer.get("method") in (
                "Runtime.exceptionThrown",
                "Log.entryAdded",
                "Runtime.consoleAPICalled",
            ):
                self.logged.append(json.dumps(answer["params"])[:400])
            if answer.get("method") == "Network.requestWillBeSent":
                self.requested.append(answer["params"]["request"]["url"])
            if answer.get("id") == self._number:
                assert "error" not in answer, answer["error"]
                return answer["result"]

    def _receive(self) -> Any:
        while b"\0" not in self._left:
            part = self._in.read1(1 << 16)
            assert part, "the browser ended"
            self._left += part
        message, _, self._left = self._left.partition(b"\0")
        return json.loads(message)

    def open(self, url: str) -> Tab:
        return self._tab(url)

    def visit(self, url: str, width: int, scheme: str = "light") -> Tab:
        """A page on a screen of that many pixels, all of whose requests are kept."""
        tab = self._tab("about:blank")
        tab.send("Network.enable")
        tab.send(
            "Emulation.setDeviceMetricsOverride", width=width, height=800, deviceScaleFactor=1, mobile=False
        )
        tab.send("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
        tab.send("Page.navigate", url=url)
        tab.wait("location.href !== 'about:blank' && document.readyState === 'complete'")
        return tab

    def _tab(self, url: str) -> Tab:
        target = self.send("Target.createTarget", url=url)["targetId"]
        session = self.send("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Runtime", "Log", "Page"):
            self.send(f"{domain}.enable", session)
        tab = Tab(self, target, session)
        tab.wait(f"location.href !== 'about:blank' === {json.dumps(url != 'about:blank')}")
        tab.wait("document.readyState === 'complete'")
        return tab


class Tab:
    def __init__(self, browser: Chromium, target: str, session: str) -> None:
        self._browser, self._target, self._session = browser, target, session

    def send(self, method: str, **params: object) -> Any:
        return self._browser.send(method, self._session, **params)

    def overflow(self) -> int:
        """By how many pixels the page is wider than its screen."""
        wide = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
        return int(self.run(wide))

    def run(self, script: str) -> Any:
        found = self._browser.send(
            "Runtime.evaluate", self._session, expression=script, returnByValue=True, awaitPromise=True
        )
        assert "exceptionDetails" not in found, found["exceptionDetails"]
        return found["result"].get("value")

    def wait(self, script: str) -> Any:
        """Until a script's value is true."""
        end = time.monotonic() + _PATIENCE
        while not (value := self.run(script)):
            assert time.monotonic() < end, f"never true: {script}; {self._browser.logged}"
            time.sleep(0.02)
        return value

    def text(self, id_: str) -> str:
        return str(self.run(f"document.getElementById({id_!r}).textContent"))

    def press(self, *keys: str) -> None:
        for key in keys:
            code = {"Enter": 13, "Escape": 27, "ArrowLeft": 37, "ArrowRight": 39}.get(key, 0)
            text = {"Enter": "\r"}.get(key, key if len(key) == 1 else "")
            event = {"key": key, "windowsVirtualKeyCode": code} | ({"text": text} if text else {})
            for kind in ("keyDown", "keyUp"):
                self._browser.send("Input.dispatchKeyEvent", self._session, type=kind, **event)

    def offline(self) -> None:
        self._browser.send("Network.enable", self._session)
        conditions = {"offline": True, "latency": 0, "downloadThroughput": -1, "uploadThroughput": -1}
        self._browser.send("Network.emulateNetworkConditions", self._session, **conditions)

    def close(self) -> None:
        self._browser.send("Target.closeTarget", targetId=self._target)

    def picture(self, path: Path) -> None:
        data = self._browser.send("Page.captureScreenshot", self._session)["data"]
        path.write_bytes(base64.b64decode(data))
