"""The page of a report in headless Chromium: what a reader with a mouse, a keyboard or a phone can do with it."""

from __future__ import annotations

import io
import json
import math
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from PIL import Image

import tfconvert
from tests.report.test_page import HOSTILE
from tests.rings.test_service_page import AXE
from tests.tools.test_view import FAILS, two_files
from tfconvert.converter.pipeline.pass_result import QuantizationReport
from tfconvert.converter.pipeline.tuning_report import TunedForm, TuningReport
from tfconvert.converter.targets.litert.accelerator_check import TITLES
from tfconvert.report.page import render
from tfconvert.report.report import Report
from tfconvert.schema.fidelity import Exclusions, Fidelity, LayerFidelity, OutputFidelity
from tfconvert.tools.view import view_page

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
    report = tfconvert.convert(digits_model, quantize=quantize, verify=True, keep_graphs=True).report
    assert report.graphs is not None
    ops = [node for node in report.graphs["after"][0]["nodes"] if node["op"] not in ("Input", "Output")]
    return report.to_html([0.1 + 0.01 * index for index in range(len(ops))])


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


def _tabs(page: Any) -> dict[str, str]:
    """Returns the titles of the panel's tabs by what they show."""
    return {str(tab.get_attribute("aria-controls")): str(tab.inner_text()) for tab in page.locator("[role=tab]").all()}


def _titles(page: Any) -> list[str]:
    """Returns what is written on the boxes of the graph that are shown."""
    return list(page.evaluate("document.querySelector('.graph').graph.items.map((at) => at.item.label)"))


def _drawn(page: Any) -> int:
    return int(page.get_attribute(".graph canvas", "data-drawn"))


def _at(page: Any) -> tuple[str, str]:
    """Returns the scale and the position of the drawing."""
    canvas = page.locator(".graph canvas").first
    return canvas.get_attribute("data-scale"), canvas.get_attribute("data-at")


def _selected(page: Any) -> str:
    return str(page.evaluate("document.querySelector('.graph').graph.selected.label"))


def _colour_by(page: Any, mode: str) -> str:
    page.select_option("[aria-label='Colour by']", mode)
    _settle(page)
    return str(page.inner_text(".legend"))


def _click_on(page: Any, label: str, dx: float = 0.5) -> None:
    """Clicks on a box of the graph, at a share of its width, or so many units from its left if `dx` is negative."""
    x, y = page.evaluate(
        """([label, dx]) => {
          const { graph } = document.querySelector(".graph");
          const at = graph.items.find((each) => each.item.label === label);
          graph.center(at);
          graph.drawNow();
          const box = graph.canvas.getBoundingClientRect();
          const top = at.isOpen ? 16 : at.height / 2;
          const x = at.x + (dx < 0 ? -dx : at.width * dx);
          return [box.x + graph.x + x * graph.scale, box.y + graph.y + (at.y + top) * graph.scale];
        }""",
        [label, dx],
    )
    page.mouse.click(x, y)
    _settle(page)


def test_every_section_is_in_a_tab(open_page: Open, digits_page: str, float_page: str) -> None:
    found: dict[str, str] = {}
    for text in (digits_page, float_page):
        page = open_page(text)
        tabs = _tabs(page)
        found |= tabs
        for name in tabs:
            page.click(f"#tab-{name}")
            assert page.locator("[role=tabpanel]:visible").get_attribute("id") == name
            assert page.inner_text(f"#{name}")
    assert set(found) == {
        "details",
        "size",
        "speed",
        "fusions",
        "quantization",
        "accelerators",
        "verification",
        "notes",
    }
    assert all(found.values())
    assert [page.locator(tag).count() for tag in ("header", "main", "h1")] == [1, 1, 1]


def test_the_graph_fills_the_window_at_its_natural_size(open_page: Open, float_page: str) -> None:
    page = open_page(float_page)
    _settle(page)
    box = page.locator(".graph").bounding_box()
    assert box["height"] > 0.9 * WIDE[1]
    assert box["width"] > 0.7 * WIDE[0]
    assert _at(page)[0] == "1.000"
    picture = _picture(page.locator(".graph"))
    assert len(np.unique(picture.reshape(-1, 3), axis=0)) > 60
    assert {"CONV_2D", "HARD_SWISH", "Input"} <= set(_titles(page))
    boxes = page.evaluate(
        """document.querySelector(".graph").graph.items.filter((at) => !at.isOpen)
        .map((at) => [at.x, at.y, at.width, at.height])"""
    )
    assert len(boxes) > 5
    for index, one in enumerate(boxes):
        for other in boxes[:index]:
            apart_x = one[0] >= other[0] + other[2] or other[0] >= one[0] + one[2]
            apart_y = one[1] >= other[1] + other[3] or other[1] >= one[1] + one[3]
            assert apart_x or apart_y, (one, other)


def test_the_drawing_is_saved_with_shapes_and_activations(open_page: Open, float_page: str) -> None:
    page = open_page(float_page)
    page.click(".menu summary")
    with page.expect_download() as vector:
        page.click(".menu >> text=SVG")
    text = Path(vector.value.path()).read_text("utf-8")
    words = {"".join(element.itertext()) for element in ElementTree.fromstring(text).iter() if element.text}
    assert {"CONV_2D", "DEPTHWISE_CONV_2D", "+ ReLU6", "filter", "pixels"} <= words
    assert {"24x3x3x1 f32", "?x8x8x24"} <= {each.replace("\u00d7", "x") for each in words}
    with page.expect_download() as raster:
        page.click(".menu >> text=PNG")
    assert raster.value.suggested_filename.endswith(".png")
    with Image.open(raster.value.path()) as picture:
        assert picture.height > 800


def test_search_finds_an_op_and_what_it_came_from(open_page: Open, float_page: str) -> None:
    page = open_page(float_page)
    page.fill("input[type=search]", "swish relu6")
    assert page.inner_text(".found p") == "1 op"
    page.press("input[type=search]", "Enter")
    _settle(page)
    assert "HARD_SWISH" in _details(page)
    assert "Relu6" in page.inner_text(".details .kin")
    assert _selected(page) == "HARD_SWISH"
    page.locator(".details .kin button").first.click()
    _settle(page)
    assert page.inner_text(".tab[aria-pressed=true]").startswith("Before")
    assert "HARD_SWISH" in page.inner_text(".details .kin")


def test_both_graphs_side_by_side(open_page: Open, float_page: str) -> None:
    page = open_page(float_page)
    page.click(".tab >> text=Both")
    _settle(page)
    assert page.locator(".graph").count() == 2
    page.evaluate(
        """() => {
          const { graph } = document.querySelectorAll(".graph")[1];
          graph.reveal(graph.tree.leaves.find((leaf) => leaf.label === "HARD_SWISH"));
        }"""
    )
    marked = page.evaluate("[...document.querySelector('.graph').graph.marked].map((item) => item.label)")
    assert "Relu6" in marked


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
    for _ in range(20):
        if said[-1].startswith("layer"):
            break
        keyboard.press("ArrowDown")
        said.append(page.text_content("#live"))
    keyboard.press("Enter")
    _settle(page)
    assert page.text_content("#live").endswith("closed")
    keyboard.press("Enter")
    _settle(page)
    assert page.text_content("#live").endswith("opened")
    before = _at(page)
    keyboard.press("+")
    _settle(page)
    assert _at(page) != before
    keyboard.press("Escape")
    assert "Arena" in _details(page)
    page.focus("#tab-details")
    keyboard.press("ArrowRight")
    assert page.evaluate("document.activeElement.getAttribute('aria-selected')") == "true"
    assert page.locator("[role=tabpanel]:visible").get_attribute("id") != "details"


def test_mouse_moves_zooms_and_opens(open_page: Open, float_page: str) -> None:
    page = open_page(float_page)
    _settle(page)
    shown = _titles(page)
    page.click("[aria-label='Close all layers']")
    _settle(page)
    closed = _titles(page)
    assert len(closed) < len(shown)
    group = page.evaluate(
        "document.querySelector('.graph').graph.items.find((at) => at.item.kind === 'group').item.label"
    )
    _click_on(page, group, -22)
    assert len(_titles(page)) > len(closed)
    _click_on(page, "CONV_2D")
    assert "CONV_2D" in _details(page)
    assert page.locator(".histogram").count() > 0
    page.click("[aria-label='Open all layers']")
    _settle(page)
    before = _at(page)
    box = page.locator(".graph").bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x + 40, y + 25)
    page.mouse.up()
    _settle(page)
    moved = _at(page)
    assert moved != before
    page.mouse.wheel(0, 200)
    _settle(page)
    assert _at(page)[0] == moved[0]
    assert _at(page) != moved
    page.click("[aria-label='Show the whole graph']")
    _settle(page)
    assert _drawn(page) == page.evaluate("document.querySelector('.graph').graph.items.length")


def test_the_graph_is_coloured_by_what_is_known(open_page: Open, digits_page: str) -> None:
    page = open_page(digits_page)
    modes = page.locator("[aria-label='Colour by'] option").evaluate_all("(all) => all.map((each) => each.value)")
    own = ["kind", "type", "weight-type", "weights", "activations", "macs", "error", "weight-error", "latency"]
    assert modes == [*own, *(f"accelerator-{name}" for name in TITLES)]
    pictures = []
    for mode in modes:
        legend = _colour_by(page, mode)
        assert legend
        assert legend != "No values"
        if mode in own:
            pictures.append(_picture(page.locator(".graph")))
    for index, one in enumerate(pictures):
        assert all((one != other).any() for other in pictures[:index])
    assert "i8" in _colour_by(page, "type")
    assert "dB" in _colour_by(page, "weight-error")
    page.click("#summary >> text=Microcontrollers >> xpath=.. >> button")
    assert page.input_value("[aria-label='Colour by']") == "accelerator-micro"
    assert "microcontrollers" in page.inner_text("#accelerators")


def test_a_link_leads_to_a_node(open_page: Open, float_page: str) -> None:
    page = open_page(float_page)
    page.evaluate("location.hash = 'node=digits_1%2Fstem_swish_1%2Fmul'")
    _settle(page)
    assert _selected(page) == "HARD_SWISH"
    link = page.get_attribute(".details .link", "href")
    page.evaluate("document.querySelector('.graph').graph.select(null)")
    page.goto(page.url.partition("#")[0] + link)
    page.reload()
    _settle(page)
    assert _selected(page) == "HARD_SWISH"


def test_a_page_works_inside_a_document(open_page: Open, float_page: str) -> None:
    page = open_page("<!doctype html><title>notebook</title><iframe width=1000 height=600></iframe>")
    page.evaluate("(text) => { document.querySelector('iframe').srcdoc = text; }", float_page)
    frame = page.wait_for_selector("iframe").content_frame()
    frame.wait_for_selector("#summary .tiles")
    frame.evaluate("const { graph } = document.querySelector('.graph'); graph.reveal(graph.tree.leaves[1]); 1")
    assert "CONV_2D" in frame.inner_text(".details")


def test_an_op_is_in_a_sheet_at_the_bottom_of_a_phone(open_page: Open, float_page: str) -> None:
    page = open_page(float_page, PHONE)
    _settle(page)
    assert not page.locator("#panel").is_visible()
    _click_on(page, "CONV_2D")
    sheet = page.locator("#panel").bounding_box()
    assert sheet["y"] > 0.3 * PHONE[1]
    assert sheet["y"] + sheet["height"] == PHONE[1]
    assert "CONV_2D" in _details(page)
    page.click("[aria-label='Hide or show the panel']")
    assert not page.locator("#panel").is_visible()


@pytest.mark.parametrize("size", [WIDE, PHONE])
@pytest.mark.parametrize("name", ["digits_page", "failed_page", "compared_page"])
def test_nothing_bars_a_reader(
    open_page: Open, name: str, size: tuple[int, int], request: pytest.FixtureRequest
) -> None:
    page = open_page(request.getfixturevalue(name), size)
    _settle(page)
    page.evaluate("document.body.classList.remove('folded')")
    for tab in ("details", *(_tabs(page))):
        page.click(f"#tab-{tab}")
        found = page.evaluate(f"{AXE}; axe.run()")["violations"]
        assert [(each["id"], each["nodes"][0]["html"]) for each in found] == []


def test_a_failed_conversion_shows_what_stops_it(open_page: Open, failed_page: str) -> None:
    page = open_page(failed_page)
    _settle(page)
    assert "can't be converted" in page.inner_text("#banner")
    page.click("#banner >> text=Show in the graph")
    _settle(page)
    assert _selected(page) == "BesselK0"
    assert "unsupported-op" in page.inner_text(".details .problem")
    red = page.evaluate("getComputedStyle(document.documentElement).getPropertyValue('--bad')")
    wanted = [int(red[at : at + 2], 16) for at in (1, 3, 5)]
    picture = _picture(page.locator(".graph"))
    assert np.count_nonzero((picture == wanted).all(axis=-1)) > 1000
    page.click("#tab-notes")
    assert "What to do" in page.inner_text("#notes")


def test_two_files_are_compared(open_page: Open, compared_page: str) -> None:
    page = open_page(compared_page)
    _settle(page)
    assert page.locator(".graph").count() == 2
    assert "1 changed, 1 removed" in page.inner_text("#summary")
    page.click("#tab-differences")
    rows = page.inner_text("#differences table").splitlines()
    assert any(row.startswith("TANH") and "only in" in row for row in rows)
    page.locator("#differences button", has_text="ADD").click()
    _settle(page)
    assert "Differs from the other file" in _details(page)


def test_repeated_blocks_are_folded(open_page: Open) -> None:
    nodes: list[dict[str, Any]] = [{"op": "Input", "name": "x", "types": ["f32[8]"]}]
    for block in range(48):
        for step, op in enumerate(("MEAN", "SUB", "FULLY_CONNECTED", "GELU", "ADD")):
            index = len(nodes)
            nodes.append(
                {"op": op, "name": f"net_1/layer_{block}_{step}/y", "types": ["f32[8]"], "operands": [[index - 1, 0]]}
            )
    function = {"name": "main", "keys": [], "live_bytes": 0, "nodes": nodes, "links": {}}
    page = open_page(render({"source": "m"}, {"before": [], "after": [function], "stages": []}))
    _settle(page)
    assert _titles(page) == ["Input", "layer_0 \u2013 layer_47"]
    _click_on(page, "layer_0 \u2013 layer_47", -22)
    assert _titles(page)[2:] == [f"layer_{block}" for block in range(48)]


@pytest.mark.parametrize("name", ["digits_page", "float_page", "hostile"])
def test_a_phone_needs_no_sideways_scrolling(open_page: Open, name: str, request: pytest.FixtureRequest) -> None:
    page = open_page(_hostile() if name == "hostile" else request.getfixturevalue(name), PHONE)
    _settle(page)
    assert page.evaluate("[innerWidth, document.documentElement.scrollWidth]") == [390, 390]
    boxes = [button.bounding_box() for button in page.locator(".tool:visible, .tab:visible, .button:visible").all()]
    assert min(box["height"] for box in boxes) >= 40
    page.click("[aria-label='Hide or show the panel']")
    for tab in _tabs(page):
        page.click(f"#tab-{tab}")
        assert page.evaluate("document.querySelector('.pages').scrollWidth <= 390"), tab


@pytest.mark.parametrize("size", [WIDE, PHONE])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_can_be_read(open_page: Open, digits_page: str, scheme: str, size: tuple[int, int]) -> None:
    page = open_page(digits_page, size, scheme)
    _settle(page)
    if size == PHONE:
        page.click("[aria-label='Hide or show the panel']")
    for tab in _tabs(page):
        page.click(f"#tab-{tab}")
        assert page.evaluate(_CONTRAST) == []
    brightness = _picture(page.locator("body")).mean()
    assert brightness > 200 if scheme == "light" else brightness < 70


@pytest.fixture(scope="module")
def failed_page(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("failed") / "gamma.mlir"
    path.write_text(FAILS)
    return view_page(path)


@pytest.fixture(scope="module")
def compared_page() -> str:
    return view_page(*map(bytes, two_files()))


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
    for name in _tabs(page):
        page.click(f"#tab-{name}")
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
    page.click("#tab-size")
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
    assert 0 < _drawn(page) < 200
    page.fill("input[type=search]", "op_5555")
    page.press("input[type=search]", "Enter")
    _settle(page)
    assert "op_5555" in _details(page)
    page.click("[aria-label='Open all layers']")
    _settle(page)
    assert len(_titles(page)) > 10_000
    for scale in (1.0, 0.3, 0.1, 0.03, 0.01, 0.001):
        page.evaluate(
            """(scale) => {
              const { graph } = document.querySelector(".graph");
              graph.home();
              graph.zoom(scale);
              graph.pan(0, -graph.size.height * scale / 2);
              graph.drawNow();
            }""",
            scale,
        )
        assert _drawn(page) < 1500, scale


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_low_fidelity_is_the_first_thing_to_see(open_page: Open, scheme: str) -> None:
    layer = LayerFidelity("widened", "CONV_2D", 46.1, 0.0, 0.0, 4536.0, 0.0005, 0.875)
    exclusions = Exclusions(("widened", "narrowed"), 41.1, 1.0, 3)
    fidelity = Fidelity(24, (OutputFidelity("y", 12.34, 0.87),), layers=(layer,), exclusions=exclusions)
    page = open_page(Report("model", quantization=QuantizationReport((), fidelity)).to_html(), scheme=scheme)
    tile = page.locator("#summary .tile").first
    assert " ".join(tile.inner_text().split()).startswith("Fidelity 12.3 dB")
    assert "87% same top-1, below 20 dB or 90%" in tile.inner_text()
    assert tile.get_attribute("class") == "tile bad alarm"
    page.click("#tab-quantization")
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
    assert tile.inner_text().split() == ["Fidelity", "exact", "100%", "same", "top-1"]
    assert tile.get_attribute("class") == "tile good"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_tuned_forms_are_shown_with_their_times(open_page: Open, scheme: str) -> None:
    forms = (
        TunedForm("every-nth", "1x56x56x64", "abc", "reshape slice reshape", 110.24, 12.0, True, True, 2),
        TunedForm("tile-by-copies", "1x32<b>", "def", "concatenation", math.nan, math.nan, True, True),
    )
    page = open_page(Report("model", tuning=TuningReport("a board", forms)).to_html(), scheme=scheme)
    page.click("#tab-tuning")
    text = page.inner_text("#tuning")
    assert "Measured on a board: 196.5 µs less than with the other forms, 0.0 µs less than without tuning." in text
    rows = [row.split("\t") for row in text.splitlines()]
    assert ["every-nth", "1x56x56x64", "2", "110.2 µs", "12.0 µs", "fast", "reshape slice reshape"] in rows
    assert ["tile-by-copies", "1x32<b>", "1", "", "", "fast", "concatenation"] in rows
    assert page.evaluate(_CONTRAST) == []
