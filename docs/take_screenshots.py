"""Takes the pictures of the service's page in docs/service.md, with the Chromium of the system.

    python docs/take_screenshots.py

It starts a server that converts the example model.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from playwright.sync_api import sync_playwright

ROOT = Path(__file__).resolve().parent.parent
MODEL = ROOT / "examples" / "digits" / "saved_model"
WIDE = {"width": 1100, "height": 760}
PHONE = {"width": 390, "height": 760}


@contextmanager
def _server(data: Path) -> Iterator[str]:
    command = [sys.executable, "-m", "tfconvert", "serve", "--port", "0", "--data", str(data)]
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        yield process.stdout.readline().split()[-1]
    finally:
        process.terminate()
        process.communicate()


def _convert(page: Any, model: Path, mode: str) -> None:
    page.set_input_files("#folder", model)
    page.select_option("#quantize", mode)
    page.check("#verify")
    page.click("#more-settings > summary")
    page.check("#set-accelerator-gpu")
    page.click("#more-settings > summary")
    page.click("#submit")
    page.wait_for_selector("#job .state.succeeded")
    page.wait_for_selector("#findings li")


def main() -> None:
    """Writes the pictures."""
    with tempfile.TemporaryDirectory() as folder, _server(Path(folder) / "data") as url, sync_playwright() as driver:
        model = shutil.copytree(MODEL, Path(folder) / "digits")
        browser = driver.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        for name, size, scheme in (("service", WIDE, "light"), ("service_phone", PHONE, "dark")):
            context = browser.new_context(viewport=size, color_scheme=scheme, reduced_motion="reduce")
            page = context.new_page()
            page.goto(url)
            _convert(page, model, "float16" if scheme == "dark" else "dynamic")
            page.evaluate("document.getElementById('job').scrollIntoView()")
            page.wait_for_timeout(300)
            page.screenshot(path=ROOT / "docs" / f"{name}.png")
            context.close()
        browser.close()


if __name__ == "__main__":
    main()
