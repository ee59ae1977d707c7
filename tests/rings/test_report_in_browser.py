"""The page of a report in headless Chromium: what a reader with a mouse, a keyboard or a phone can do with it."""

from __future__ import annotations

import io
import json
import random
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import tfconvert
from tests.converter.report_page.test_page import HOSTILE
from tfconvert.converter.report_page.page import render

webdriver = pytest.importorskip("selenium.webdriver")
keys = pytest.importorskip("selenium.webdriver.common.keys").Keys
service = pytest.importorskip("selenium.webdriver.chrome.service")

BROWSER, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
pytestmark = pytest.mark.skipif(not BROWSER or not DRIVER, reason="no chromium, or no chromedriver, is installed")

WIDE = (1360, 900)
PHONE = (390, 844)

Open = Callable[..., Any]

_CONTRAST = """
const probe = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
const light = (color) => {
  probe.clearRect(0, 0, 1, 1); probe.fillStyle = color; probe.fillRect(0, 0, 1, 1);
  const parts = [...probe.getImageData(0, 0, 1, 1).data].slice(0, 3).map((part) => part / 255);
  const [r, g, b] = parts.map((part) => (part <= 0.03928 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4));
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
};
const behind = (element) => {
  for (let at = element; at; at = at.parentElement) {
    const color = getComputedStyle(at).backgroundColor;
    if (!/, 0\\)$/.test(color) && color !== "transparent") return color;
  }
  return "white";
};
return [...document.querySelectorAll("h1, h2, h3, h4, p, dt, dd, small, th, td, code, a, button, li, .type")]
  .filter((element) => element.offsetHeight > 4 && element.textContent.trim() && !element.closest(".skip"))
  .map((element) => {
    const [one, other] = [light(getComputedStyle(element).color), light(behind(element))];
    return [(Math.max(one, other) + 0.05) / (Math.min(one, other) + 0.05), element.tagName + " " + element.className];
  })
  .filter(([contrast]) => contrast < 4.5);
"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    options = webdriver.ChromeOptions()
    options.binary_location = BROWSER
    # The sandbox needs rights that containers don't have; what is opened is our own.
    for argument in (
        "headless=new",
        "no-sandbox",
        "disable-gpu",
        "disable-dev-shm-usage",
        "hide-scrollbars",
        "window-size=1400,1100",
    ):
        options.add_argument(f"--{argument}")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=service.Service(DRIVER))
    yield driver
    driver.quit()


@pytest.fixture
def open_page(browser: Any, tmp_path: Path) -> Iterator[Open]:
    """Returns a function that opens a page; at the end there must be no message on the console."""

    def open_page(page: str, size: tuple[int, int] = WIDE, scheme: str = "light") -> Any:
        path = tmp_path / "report.html"
        path.write_text(page, "utf-8")
        width, height = size
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": size == PHONE}
        wishes = {"prefers-color-scheme": scheme, "prefers-reduced-motion": "reduce"}
        media = {"features": [{"name": name, "value": value} for name, value in wishes.items()]}
        browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", media)
        browser.get(path.as_uri())
        return browser

    yield open_page
    assert browser.get_log("browser") == []


@pytest.fixture(scope="module")
def digits_page(digits_model: Path) -> str:
    samples = [{"pixels": np.random.default_rng(0).random((1, 8, 8, 1), np.float32)} for _ in range(4)]
    quantize = tfconvert.Quantize("int8", samples=samples)
    return tfconvert.convert(digits_model, quantize=quantize, verify=True, keep_graphs=True).report.to_html(
        {"ADD": 0.1}
    )


@pytest.fixture(scope="module")
def float_page(digits_model: Path) -> str:
    return tfconvert.convert(digits_model, verify=True, keep_graphs=True).report.to_html()


def _find(browser: Any, selector: str) -> Any:
    return browser.find_element("css selector", selector)


def _all(browser: Any, selector: str) -> list[Any]:
    return list(browser.find_elements("css selector", selector))


def _settle(browser: Any) -> None:
    """Waits until what was changed is drawn."""
    browser.execute_async_script("requestAnimationFrame(() => requestAnimationFrame(arguments[0]))")


def _details(browser: Any) -> str:
    return str(_find(browser, ".details").text)


def _picture(element: Any) -> Any:
    return np.asarray(Image.open(io.BytesIO(element.screenshot_as_png)).convert("RGB"))


def test_every_section_is_there_and_linked(open_page: Open, digits_page: str, float_page: str) -> None:
    titles: dict[str, str] = {}
    for page in (digits_page, float_page):
        browser = open_page(page)
        titles |= {
            section.get_attribute("id"): _find(section, "h2").text for section in _all(browser, "main > section")
        }
        targets = [link.get_attribute("href").partition("#")[2] for link in _all(browser, "nav a")]
        assert targets == [section.get_attribute("id") for section in _all(browser, "main > section")]
    sections = {"summary", "graph", "size", "latency", "fusions", "quantization", "time", "verification", "notes"}
    assert set(titles) == sections
    assert all(titles.values())
    assert [len(_all(browser, tag)) for tag in ("header", "nav", "main", "footer", "h1")] == [1, 1, 1, 1, 1]


def test_the_graph_is_drawn(open_page: Open, float_page: str) -> None:
    browser = open_page(float_page)
    _settle(browser)
    picture = _picture(_find(browser, ".graph"))
    assert len(np.unique(picture.reshape(-1, 3), axis=0)) > 60
    labels = [label.text for label in _all(browser, ".item .title")]
    assert {"CONV_2D", "HARD_SWISH", "pixels"} <= set(labels)
    boxes = [box.rect for box in _all(browser, ".item:not(.open) > rect:first-child")]
    for index, one in enumerate(boxes):
        for other in boxes[:index]:
            apart_x = one["x"] >= other["x"] + other["width"] or other["x"] >= one["x"] + one["width"]
            apart_y = one["y"] >= other["y"] + other["height"] or other["y"] >= one["y"] + one["height"]
            assert apart_x or apart_y, (one, other)


def test_search_finds_an_op_and_what_it_came_from(open_page: Open, float_page: str) -> None:
    browser = open_page(float_page)
    search = _find(browser, "input[type=search]")
    search.send_keys("swish relu6")
    assert _find(browser, ".found p").text == "1 op"
    search.send_keys(keys.ENTER)
    _settle(browser)
    assert "HARD_SWISH" in _details(browser)
    assert "Relu6" in _find(browser, ".details .kin").text
    assert _find(browser, ".item.selected .title").text == "HARD_SWISH"
    _find(browser, ".details .kin button").click()
    _settle(browser)
    assert _find(browser, ".tab[aria-pressed=true]").text.startswith("Before")
    assert "HARD_SWISH" in _find(browser, ".details .kin").text


def test_everything_works_by_keyboard(open_page: Open, float_page: str) -> None:
    browser = open_page(float_page)
    press = webdriver.ActionChains(browser)
    press.send_keys(keys.TAB).perform()
    assert browser.switch_to.active_element.text == "Skip to the report"
    for _ in range(40):
        press.send_keys(keys.TAB).perform()
        if browser.switch_to.active_element.get_attribute("class") == "graph":
            break
    assert browser.switch_to.active_element.get_attribute("role") == "application"
    said = []
    for _ in range(4):
        press.send_keys(keys.ARROW_DOWN).perform()
        _settle(browser)
        said.append(_find(browser, "#live").get_attribute("textContent"))
    assert said[0] == "Input pixels"
    assert len(set(said)) == 4
    while not said[-1].startswith("layer"):
        press.send_keys(keys.ARROW_UP).perform()
        said.append(_find(browser, "#live").get_attribute("textContent"))
    press.send_keys(keys.ENTER).perform()
    _settle(browser)
    assert not _all(browser, ".item.open")
    press.send_keys(keys.ENTER).perform()
    _settle(browser)
    assert len(_all(browser, ".item.open")) == 1
    before = _find(browser, ".graph svg > g").get_attribute("transform")
    press.send_keys("+").perform()
    _settle(browser)
    assert _find(browser, ".graph svg > g").get_attribute("transform") != before


def test_mouse_moves_zooms_and_opens(open_page: Open, float_page: str) -> None:
    browser = open_page(float_page)
    _settle(browser)
    assert len(_all(browser, ".item")) > 5
    _find(browser, ".item.open .sign").click()
    _settle(browser)
    assert len(_all(browser, ".item")) == 3
    _find(browser, "[aria-label='Open all layers']").click()
    _settle(browser)
    assert len(_all(browser, ".item")) > 5
    world = _find(browser, ".graph svg > g")
    before = world.get_attribute("transform")
    graph = _find(browser, ".graph")
    webdriver.ActionChains(browser).move_to_element(graph).click_and_hold().move_by_offset(40, 25).release().perform()
    _settle(browser)
    assert world.get_attribute("transform") != before


@pytest.mark.parametrize("page", ["digits_page", "float_page", "hostile"])
def test_a_phone_needs_no_sideways_scrolling(open_page: Open, page: str, request: pytest.FixtureRequest) -> None:
    browser = open_page(_hostile() if page == "hostile" else request.getfixturevalue(page), PHONE)
    _settle(browser)
    assert browser.execute_script("return [innerWidth, document.documentElement.scrollWidth]") == [390, 390]
    assert min(button.size["height"] for button in _all(browser, ".tool, .tab, .button")) >= 40


@pytest.mark.parametrize("size", [WIDE, PHONE])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_can_be_read(open_page: Open, digits_page: str, scheme: str, size: tuple[int, int]) -> None:
    browser = open_page(digits_page, size, scheme)
    _settle(browser)
    assert browser.execute_script(_CONTRAST) == []
    brightness = _picture(_find(browser, "body")).mean()
    assert brightness > 200 if scheme == "light" else brightness < 70


def _hostile() -> str:
    node = {
        "op": HOSTILE,
        "name": HOSTILE,
        "attributes": {HOSTILE: HOSTILE},
        "sources": [HOSTILE],
        "types": [HOSTILE],
        "bytes": 5,
    }
    second = {
        **node,
        "operands": [[0, 0], {"type": HOSTILE, "name": HOSTILE, "value": HOSTILE}],
        "names": [HOSTILE, "b"],
    }
    function = {"name": HOSTILE, "keys": [HOSTILE], "live_bytes": 1, "nodes": [node, second]}
    report = {
        "source": HOSTILE,
        "size": 1,
        "min_runtime_version": HOSTILE,
        "functions": [{"signatures": [HOSTILE], "inputs": {HOSTILE: HOSTILE}, "outputs": {HOSTILE: HOSTILE}}],
        "operators": {HOSTILE: 1},
        "bytes_by_operator": {HOSTILE: 1},
        "rewrites": {HOSTILE: {HOSTILE: 1}},
        "verification": [{"signature": HOSTILE, "output": HOSTILE, "max_absolute": 1.0, "max_relative": 1.0}],
        "notes": [{"code": HOSTILE, "message": HOSTILE, "hint": HOSTILE, "node": HOSTILE, "severity": "warning"}],
        "stages": [{"name": HOSTILE, "seconds": 1.0}],
        "quantization": {
            "forms": {HOSTILE: 1}, "bytes_before": 1, "bytes_after": 1,
            "layers": [{"node": HOSTILE, "op": HOSTILE, "form": HOSTILE, "reason": HOSTILE, "weight_snr": 1.0}],
        },
    }  # fmt: skip
    links = {"1": {"from": [[0, 0]], "folded": [[0, 1]]}}
    graphs = {"before": [function], "after": [{**function, "links": links}], "stages": []}
    return render(report, graphs, {HOSTILE: 1.0})


def test_hostile_names_are_shown_and_do_nothing(open_page: Open) -> None:
    browser = open_page(_hostile())
    _settle(browser)
    scripts = browser.execute_script("return document.scripts.length")
    assert scripts == 5
    assert "<script>" in _find(browser, "#summary .tiles").text
    search = _find(browser, "input[type=search]")
    search.send_keys("alert")
    search.send_keys(keys.ENTER)
    _settle(browser)
    assert not _all(browser, "img")
    assert "<script>alert(1)</script>" in _details(browser)
    assert "\\u{202e}" in _details(browser)
    assert not set("\u0000\u202e\u2028") & set(_find(browser, "body").get_attribute("textContent"))


def test_the_policy_holds(open_page: Open, browser: Any) -> None:
    open_page(render({"source": "m"}))
    add = "const s = document.createElement('script'); s.textContent = 'window.ran = 1'; document.body.append(s)"
    assert browser.execute_script(f"{add}; return window.ran") is None
    (entry,) = browser.get_log("browser")
    assert "Content Security Policy" in entry["message"]


def test_a_page_without_graphs_says_how_to_get_them(open_page: Open, digits_model: Path) -> None:
    browser = open_page(tfconvert.convert(digits_model).report.to_html())
    assert "--report" in _find(browser, "#graph").text
    assert "CONV_2D" in _find(browser, "#size").text


@pytest.mark.parametrize("scoped", [False, True])
def test_ten_thousand_ops(open_page: Open, scoped: bool) -> None:
    draw = random.Random(0)
    nodes: list[dict[str, Any]] = [{"op": "Input", "name": "x", "types": ["f32[1]"]}]
    for index in range(1, 10_000):
        name = f"block_{index // 100}/layer_{index // 10}/op_{index}" if scoped else f"op_{index}"
        operands = [[max(0, index - draw.randint(1, 5)), 0], [max(0, index - draw.randint(1, 60)), 0]]
        nodes.append(
            {"op": draw.choice(["Conv2D", "AddV2", "Relu"]), "name": name, "types": ["f32[8]"], "operands": operands}
        )
    function = {"name": "main", "keys": ["serve"], "live_bytes": 0, "nodes": nodes, "links": {}}
    browser = open_page(
        render({"source": "large"}, {"before": [], "after": [json.loads(json.dumps(function))], "stages": []})
    )
    _settle(browser)
    assert 0 < len(_all(browser, ".item")) < 300
    search = _find(browser, "input[type=search]")
    search.send_keys("op_5555", keys.ENTER)
    _settle(browser)
    assert "op_5555" in _find(browser, ".item.selected .under").text
    _find(browser, "[aria-label='Open all layers']").click()
    _settle(browser)
    assert 0 < len(_all(browser, ".item")) < 1500
