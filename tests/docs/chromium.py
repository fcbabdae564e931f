"""A headless Chromium that tests steer by the Chrome DevTools Protocol, over a pair of pipes."""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
from pathlib import Path
from types import TracebackType
from typing import Any

CHROMIUM = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)


class Chromium:
    """A browser with one page."""

    def __init__(self, profile: Path) -> None:
        """Starts the browser; `profile` is an empty folder for what it keeps."""
        assert CHROMIUM is not None
        # The browser reads commands from its descriptor 3 and writes answers to 4.
        (commands, self._to), (self._from, answers) = os.pipe(), os.pipe()
        command = [
            CHROMIUM, "--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run",
            "--remote-debugging-pipe", f"--user-data-dir={profile}", "about:blank",
        ]  # fmt: skip
        self._process = subprocess.Popen(
            ["bash", "-c", f'exec "$@" 3<&{commands} 4>&{answers}', "bash", *command],
            pass_fds=(commands, answers),
            stderr=subprocess.DEVNULL,
        )
        os.close(commands)
        os.close(answers)
        self._unread = b""
        self._number = 0
        self._session: str | None = None
        (page, *_) = (
            target
            for target in self.call("Target.getTargets")["targetInfos"]
            if target["type"] == "page"
        )
        attached = self.call("Target.attachToTarget", targetId=page["targetId"], flatten=True)
        self._session = attached["sessionId"]

    def __enter__(self) -> Chromium:
        """Returns the browser."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Ends the browser."""
        self._process.kill()
        self._process.wait()
        os.close(self._to)
        os.close(self._from)

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Returns what a method of the protocol answers."""
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": parameters}
        if self._session is not None:
            message["sessionId"] = self._session
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self._to, data) :]
        while True:
            answer = self._read()
            if answer.get("id") == self._number:
                assert "error" not in answer, answer["error"]
                result: dict[str, Any] = answer["result"]
                return result

    def _read(self) -> dict[str, Any]:
        while b"\0" not in self._unread:
            data = os.read(self._from, 2**20)
            assert data, "Chromium has ended"
            self._unread += data
        text, _, self._unread = self._unread.partition(b"\0")
        message: dict[str, Any] = json.loads(text)
        return message

    def evaluate(self, script: str) -> Any:
        """Returns the value of an expression in the page; one of a promise is waited for."""
        answer = self.call(
            "Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True
        )
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def open(self, address: str) -> None:
        """Opens a page, and waits until it is there."""
        self.call("Page.navigate", url=address)
        self.evaluate(
            "new Promise(done => { const look = () => document.readyState === 'complete' && "
            f"location.href.startsWith({json.dumps(address[:40])}) ? done() : setTimeout(look, 20);"
            " look(); })"
        )

    def resize(self, width: int, height: int) -> None:
        """Gives the page a size in CSS pixels."""
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width, height=height, deviceScaleFactor=1, mobile=width < 600,
        )  # fmt: skip

    def set_dark(self, dark: bool) -> None:
        """Shows the page as a reader sees it who prefers dark colours, or light ones."""
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])

    def screenshot(self, path: Path) -> None:
        """Writes a picture of the visible part."""
        data = self.call("Page.captureScreenshot", format="png")["data"]
        path.write_bytes(base64.b64decode(data))
