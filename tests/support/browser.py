"""A headless Chromium that is told what to do over two pipes, in its DevTools protocol."""

import base64
import json
import os
import select
import shutil
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

SECONDS = 60.0
# What a page may say that no one need act on.
_LEVELS = {"error", "warning"}


def find() -> str | None:
    """The program, or None if this machine has none."""
    names = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
    return next((found for name in names if (found := shutil.which(name))), None)


class Browser:
    """One page in a browser of its own. A context manager: the browser ends with it."""

    def __init__(self, program: str) -> None:
        self._profile = tempfile.TemporaryDirectory(prefix="sinkbench-browser-", ignore_cleanup_errors=True)
        from_us, self._to = os.pipe()
        self._from, to_us = os.pipe()
        # The protocol's file descriptors are 3 and 4; bash puts ours there, while sh may know no number above 9.
        pipes = f'exec "$0" "$@" 3<&{from_us} 4>&{to_us}'
        self._process = subprocess.Popen(
            [
                *("bash", "-c", pipes, program, "--headless=new", "--remote-debugging-pipe", "--no-sandbox"),
                *("--disable-gpu", "--disable-dev-shm-usage", "--no-first-run", "--disable-background-networking"),
                *("--hide-scrollbars", f"--user-data-dir={self._profile.name}", "about:blank"),
            ],
            pass_fds=(from_us, to_us),
            stderr=subprocess.DEVNULL,
        )
        os.close(from_us)
        os.close(to_us)
        self._left = b""
        self._number = 0
        self._session: str | None = None
        # All that the page has reported so far.
        self.events: list[dict[str, Any]] = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Log", "Runtime", "Network"):
            self.call(f"{domain}.enable")

    def __enter__(self) -> "Browser":
        return self

    def __exit__(self, *exc: object) -> None:
        os.close(self._to)
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        os.close(self._from)
        self._profile.cleanup()

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        """Calls a method of the protocol and returns its result; RuntimeError if it refuses or says nothing."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": params}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._to, json.dumps(message).encode() + b"\0")
        while True:
            found = self._next()
            if found.get("id") == self._number:
                if "error" in found:
                    raise RuntimeError(f"{method}: {found['error']['message']}")
                return dict(found["result"])
            self.events.append(found)

    def open(self, page: Path | str, width: int, dark: bool) -> float:
        """Shows a file or an address so many pixels wide; returns how many seconds that took, to its first frame."""
        size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600}
        self.call("Emulation.setDeviceMetricsOverride", **size)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])
        begun = len(self.events)
        started = time.monotonic()
        self.call("Page.navigate", url=page if isinstance(page, str) else page.resolve().as_uri())
        while not any(event.get("method") == "Page.loadEventFired" for event in self.events[begun:]):
            self.events.append(self._next())
        self.evaluate("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
        return time.monotonic() - started

    def evaluate(self, script: str) -> Any:
        """The value of an expression in the page, which may be a promise of one."""
        found = self.call("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in found:
            raise RuntimeError(f"{script}: {found['exceptionDetails']}")
        return found["result"].get("value")

    def screenshot(self, to: Path) -> None:
        """Keeps a picture of the whole page."""
        size = self.call("Page.getLayoutMetrics")["cssContentSize"]
        clip = {"x": 0, "y": 0, "width": size["width"], "height": min(size["height"], 16_000), "scale": 1}
        found = self.call("Page.captureScreenshot", captureBeyondViewport=True, clip=clip)
        to.write_bytes(base64.b64decode(found["data"]))

    def complaints(self) -> list[str]:
        """What the page has written to the console as an error or a warning, and what it could not load or run."""
        said = []
        for event in self.events:
            method, params = event.get("method"), event.get("params", {})
            if method == "Log.entryAdded" and params["entry"]["level"] in _LEVELS:
                said.append(params["entry"]["text"])
            elif method == "Runtime.consoleAPICalled" and params["type"] in _LEVELS:
                said.append(f"console: {params['args']}")
            elif method in ("Runtime.exceptionThrown", "Network.loadingFailed"):
                said.append(f"{method}: {params}")
        return said

    def requests(self) -> list[str]:
        """The address of all that the page has asked for."""
        asked = [event for event in self.events if event.get("method") == "Network.requestWillBeSent"]
        return [event["params"]["request"]["url"] for event in asked]

    def _next(self) -> dict[str, Any]:
        ends = time.monotonic() + SECONDS
        while b"\0" not in self._left:
            ready, _, _ = select.select([self._from], [], [], max(0.0, ends - time.monotonic()))
            more = os.read(self._from, 1 << 20) if ready else b""
            if not more:
                raise RuntimeError(f"the browser said nothing for {SECONDS:g} seconds" if not ready else "it is gone")
            self._left += more
        whole, self._left = self._left.split(b"\0", 1)
        return dict(json.loads(whole))
