"""The page of a report in headless Chromium: what a reader with a mouse, a keyboard or a phone can do with it."""

from __future__ import annotations

import io
import json
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import tfconvert
from tests.report.test_page import HOSTILE
from tfconvert.converter.pipeline.pass_result import QuantizationReport
from tfconvert.report.page import render
from tfconvert.report.report import Report
from tfconvert.schema.fidelity import Exclusions, Fidelity, LayerFidelity, OutputFidelity

WIDE = (1360, 900)
PHONE = (390, 844)

Open = Callable[..., Any]

_CONTRAST = """() => {
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
}"""


@pytest.fixture
def open_page(chromium: Any, tmp_path: Path) -> Iterator[Open]:
    """Returns a function that opens a page; at the end there must be no message on the console."""
    contexts, said = [], []

    def open_page(page: str, size: tuple[int, int] = WIDE, scheme: str = "light") -> Any:
        path = tmp_path / "report.html"
        path.write_text(page, "utf-8")
        width, height = size
        context = chromium.new_context(
            viewport={"width": width, "height": height},
            color_scheme=scheme,
            reduced_motion="reduce",
            is_mobile=size == PHONE,
        )
        contexts.append(context)
        opened = context.new_page()
        opened.on("console", lambda message: said.append(message.text))
        opened.on("pageerror", lambda problem: said.append(str(problem)))
        opened.goto(path.as_uri())
        return opened

    yield open_page
    for context in contexts:
        context.close()
    assert said == []


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


def _settle(page: Any) -> None:
    """Waits until what was changed is drawn."""
    page.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")


def _details(page: Any) -> str:
    return str(page.inner_text(".details"))


def _picture(element: Any) -> Any:
    return np.asarray(Image.open(io.BytesIO(element.screenshot())).convert("RGB"))


def test_every_section_is_there_and_linked(open_page: Open, digits_page: str, float_page: str) -> None:
    titles: dict[str, str] = {}
    for text in (digits_page, float_page):
        page = open_page(text)
        sections = page.locator("main > section").all()
        names = [section.get_attribute("id") for section in sections]
        titles |= dict(zip(names, [section.locator("h2").inner_text() for section in sections], strict=True))
        assert [link.get_attribute("href") for link in page.locator("nav a").all()] == [f"#{name}" for name in names]
    expected = {"summary", "graph", "size", "latency", "fusions", "quantization", "time", "verification", "notes"}
    assert set(titles) == expected
    assert all(titles.values())
    assert [page.locator(tag).count() for tag in ("header", "nav", "main", "footer", "h1")] == [1, 1, 1, 1, 1]


def test_the_graph_is_drawn(open_page: Open, float_page: str) -> None:
    page = open_page(float_page)
    _settle(page)
    picture = _picture(page.locator(".graph"))
    assert len(np.unique(picture.reshape(-1, 3), axis=0)) > 60
    assert {"CONV_2D", "HARD_SWISH", "pixels"} <= set(page.locator(".item .title").all_text_contents())
    boxes = [box.bounding_box() for box in page.locator(".item:not(.open) > rect:first-child").all()]
    assert boxes
    for index, one in enumerate(boxes):
        for other in boxes[:index]:
            apart_x = one["x"] >= other["x"] + other["width"] or other["x"] >= one["x"] + one["width"]
            apart_y = one["y"] >= other["y"] + other["height"] or other["y"] >= one["y"] + one["height"]
            assert apart_x or apart_y, (one, other)


def test_search_finds_an_op_and_what_it_came_from(open_page: Open, float_page: str) -> None:
    page = open_page(float_page)
    page.fill("input[type=search]", "swish relu6")
    assert page.inner_text(".found p") == "1 op"
    page.press("input[type=search]", "Enter")
    _settle(page)
    assert "HARD_SWISH" in _details(page)
    assert "Relu6" in page.inner_text(".details .kin")
    assert page.text_content(".item.selected .title") == "HARD_SWISH"
    page.locator(".details .kin button").first.click()
    _settle(page)
    assert page.inner_text(".tab[aria-pressed=true]").startswith("Before")
    assert "HARD_SWISH" in page.inner_text(".details .kin")


def test_everything_works_by_keyboard(open_page: Open, float_page: str) -> None:
    page = open_page(float_page)
    keyboard = page.keyboard
    keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the report"
    for _ in range(40):
        keyboard.press("Tab")
        if page.evaluate("document.activeElement.matches('.graph')"):
            break
    assert page.evaluate("document.activeElement.getAttribute('role')") == "application"
    said = []
    for _ in range(4):
        keyboard.press("ArrowDown")
        _settle(page)
        said.append(page.text_content("#live"))
    assert said[0] == "Input pixels"
    assert len(set(said)) == 4
    while not said[-1].startswith("layer"):
        keyboard.press("ArrowUp")
        said.append(page.text_content("#live"))
    keyboard.press("Enter")
    _settle(page)
    assert page.locator(".item.open").count() == 0
    keyboard.press("Enter")
    _settle(page)
    assert page.locator(".item.open").count() == 1
    before = page.get_attribute(".graph svg > g", "transform")
    keyboard.press("+")
    _settle(page)
    assert page.get_attribute(".graph svg > g", "transform") != before


def test_mouse_moves_zooms_and_opens(open_page: Open, float_page: str) -> None:
    page = open_page(float_page)
    _settle(page)
    assert page.locator(".item").count() > 5
    page.locator(".item.open .sign").first.click()
    _settle(page)
    assert page.locator(".item").count() == 3
    page.click("[aria-label='Open all layers']")
    _settle(page)
    assert page.locator(".item").count() > 5
    before = page.get_attribute(".graph svg > g", "transform")
    page.locator(".graph").scroll_into_view_if_needed()
    box = page.locator(".graph").bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x + 40, y + 25)
    page.mouse.up()
    _settle(page)
    assert page.get_attribute(".graph svg > g", "transform") != before


@pytest.mark.parametrize("name", ["digits_page", "float_page", "hostile"])
def test_a_phone_needs_no_sideways_scrolling(open_page: Open, name: str, request: pytest.FixtureRequest) -> None:
    page = open_page(_hostile() if name == "hostile" else request.getfixturevalue(name), PHONE)
    _settle(page)
    assert page.evaluate("[innerWidth, document.documentElement.scrollWidth]") == [390, 390]
    boxes = [button.bounding_box() for button in page.locator(".tool:visible, .tab:visible, .button:visible").all()]
    assert min(box["height"] for box in boxes) >= 40


@pytest.mark.parametrize("size", [WIDE, PHONE])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_can_be_read(open_page: Open, digits_page: str, scheme: str, size: tuple[int, int]) -> None:
    page = open_page(digits_page, size, scheme)
    _settle(page)
    assert page.evaluate(_CONTRAST) == []
    brightness = _picture(page.locator("body")).mean()
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
            "forms": {HOSTILE: 1},
            "bytes_before": 1,
            "bytes_after": 1,
            "layers": [{"node": HOSTILE, "op": HOSTILE, "form": HOSTILE, "reason": HOSTILE, "weight_snr": 1.0}],
        },
    }
    links = {"1": {"from": [[0, 0]], "folded": [[0, 1]]}}
    graphs = {"before": [function], "after": [{**function, "links": links}], "stages": []}
    return render(report, graphs, {HOSTILE: 1.0})


def test_hostile_names_are_shown_and_do_nothing(open_page: Open) -> None:
    page = open_page(_hostile())
    _settle(page)
    assert page.evaluate("document.scripts.length") == 5
    assert "<script>" in page.inner_text("#summary .tiles")
    page.fill("input[type=search]", "alert")
    page.press("input[type=search]", "Enter")
    _settle(page)
    assert page.locator("img").count() == 0
    assert "<script>alert(1)</script>" in _details(page)
    assert "\\u{202e}" in _details(page)
    assert not set("\u0000\u202e\u2028") & set(page.text_content("body"))


def test_the_policy_holds(chromium: Any, tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    path.write_text(render({"source": "m"}), "utf-8")
    page = chromium.new_page()
    said: list[str] = []
    page.on("console", lambda message: said.append(message.text))
    page.goto(path.as_uri())
    page.evaluate("""() => {
      const script = document.createElement("script");
      script.textContent = "window.ran = 1";
      document.body.append(script);
    }""")
    assert page.evaluate("window.ran") is None
    page.close()
    (entry,) = said
    assert "Content Security Policy" in entry


def test_a_page_without_graphs_says_how_to_get_them(open_page: Open, digits_model: Path) -> None:
    page = open_page(tfconvert.convert(digits_model).report.to_html())
    assert "--report" in page.inner_text("#graph")
    assert "CONV_2D" in page.inner_text("#size")


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
    page = open_page(
        render({"source": "large"}, {"before": [], "after": [json.loads(json.dumps(function))], "stages": []})
    )
    _settle(page)
    assert 0 < page.locator(".item").count() < 300
    page.fill("input[type=search]", "op_5555")
    page.press("input[type=search]", "Enter")
    _settle(page)
    assert "op_5555" in page.text_content(".item.selected .under")
    page.click("[aria-label='Open all layers']")
    _settle(page)
    assert 0 < page.locator(".item").count() < 1500


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_low_fidelity_is_the_first_thing_to_see(open_page: Open, scheme: str) -> None:
    layer = LayerFidelity("widened", "CONV_2D", 46.1, 0.0, 0.0, 4536.0, 0.0005, 0.875)
    exclusions = Exclusions(("widened", "narrowed"), 41.1, 1.0, 3)
    fidelity = Fidelity(24, (OutputFidelity("y", 12.34, 0.87),), layers=(layer,), exclusions=exclusions)
    page = open_page(Report("model", quantization=QuantizationReport((), fidelity)).to_html(), scheme=scheme)
    tile = page.locator("#summary .tile").first
    assert tile.inner_text().splitlines()[:2] == ["Fidelity", "12.3 dB"]
    assert "87% same top-1, below 20 dB or 90%" in tile.inner_text()
    assert tile.get_attribute("class") == "tile bad"
    text = page.inner_text("#quantization")
    assert "Excluding these 2 layers gives 41.1 dB, 100% same top-1: widened, narrowed" in text
    assert ["widened", "CONV_2D", "46.1 dB", "0.0 dB", "0.000 to 4536", "0.05%", "87.50%"] in [
        row.split("\t") for row in text.splitlines()
    ]
    assert page.evaluate(_CONTRAST) == []


def test_a_high_fidelity_is_good(open_page: Open) -> None:
    fidelity = Fidelity(24, (OutputFidelity("y", float("inf"), 1.0),))
    page = open_page(Report("model", quantization=QuantizationReport((), fidelity)).to_html())
    tile = page.locator("#summary .tile").first
    assert tile.inner_text().splitlines() == ["Fidelity", "exact", "100% same top-1"]
    assert tile.get_attribute("class") == "tile good"
