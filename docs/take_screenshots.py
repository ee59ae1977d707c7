"""Takes the pictures of docs/report.md and docs/service.md, with the Chromium of the system.

    python docs/take_screenshots.py

It makes the pages of a MobileNetV2 with random weights, for which it needs TensorFlow, and starts a server that converts
the example model.
"""

from __future__ import annotations

import os
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
WINDOW = {"width": 1440, "height": 900}
WIDE = {"width": 1100, "height": 760}
PHONE = {"width": 390, "height": 760}

# Chooses the operator with a number in the last graph of a page.
_CHOOSE = """(index) => {
  const { graph } = [...document.querySelectorAll(".graph")].pop();
  graph.reveal(graph.tree.leaves[index]);
}"""


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


def _convert(page: Any, model: Path, settings: str) -> None:
    page.set_input_files("#folder", model)
    if settings:
        page.select_option("#quantize", settings)
    page.click("#submit")
    page.wait_for_selector("#job .state.succeeded")
    page.wait_for_selector("iframe.report").content_frame().wait_for_selector("#summary .tiles")


def _take_service(browser: Any, folder: Path) -> None:
    model = shutil.copytree(MODEL, folder / "digits")
    with _server(folder / "data") as url:
        for name, size, scheme in (("service", WIDE, "light"), ("service_phone", PHONE, "dark")):
            context = browser.new_context(viewport=size, color_scheme=scheme, reduced_motion="reduce")
            page = context.new_page()
            page.goto(url)
            _convert(page, model, "float16" if scheme == "dark" else "")
            page.evaluate("document.getElementById('job').scrollIntoView()")
            page.wait_for_timeout(300)
            page.screenshot(path=ROOT / "docs" / f"{name}.png")
            context.close()


def _view(model: Path, page: Path) -> str:
    command = [sys.executable, "-m", "tfconvert", "view", model, "-o", page, "--no-open", "--bench"]
    subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    return page.as_uri()


def _take_report(browser: Any, folder: Path) -> None:
    os.environ["CUDA_VISIBLE_DEVICES"] = ""
    import keras

    keras.utils.set_random_seed(0)
    model = folder / "mobilenet_v2"
    keras.applications.MobileNetV2(weights=None).export(model, verbose=False)
    url = _view(model, folder / "page.html")
    for name, size, scheme, tab, colours in (
        ("report", WINDOW, "light", "Converted", "macs"),
        ("report_graph", WINDOW, "light", "Both", "kind"),
        ("report_phone", PHONE, "dark", "Converted", "kind"),
    ):
        context = browser.new_context(viewport=size, color_scheme=scheme, reduced_motion="reduce")
        page = context.new_page()
        page.goto(url)
        page.click(f".tab >> text={tab}")
        if size is WINDOW:
            page.select_option("[aria-label='Colour by']", colours)
        page.evaluate(_CHOOSE, 6)
        page.wait_for_timeout(300)
        page.screenshot(path=ROOT / "docs" / f"{name}.png")
        context.close()


def main() -> None:
    """Writes the pictures."""
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        _take_report(browser, Path(folder))
        _take_service(browser, Path(folder))
        browser.close()


if __name__ == "__main__":
    main()
