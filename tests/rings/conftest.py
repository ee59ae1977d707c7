"""The browser that the pages are tried in: the system's Chromium, driven by Playwright."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from typing import Any

import pytest


@pytest.fixture(scope="module")  # Its event loop is in the way of those of other modules.
def chromium() -> Iterator[Any]:
    """Returns a running Chromium."""
    playwright = pytest.importorskip("playwright.sync_api")
    path = shutil.which("chromium")
    if path is None:
        pytest.skip("no chromium is installed")
    with playwright.sync_playwright() as driver:
        # The sandbox needs rights that containers don't have; what is opened is our own.
        browser = driver.chromium.launch(executable_path=path, args=["--no-sandbox", "--disable-dev-shm-usage"])
        yield browser
        browser.close()
