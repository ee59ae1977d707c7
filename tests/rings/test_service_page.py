"""The page of the service in headless Chromium: with a mouse, with the keyboard alone, on a phone, and in trouble."""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.support import running_service
from tests.support.litert import RunTFLite
from tests.support.running_service import RunningService
from tfconvert.service.jobs import JobState

axe_core = pytest.importorskip("axe_core_python")
AXE = (Path(axe_core.__path__[0]) / "axe.min.js").read_text("utf-8")
HOSTILE = "<img src=x onerror=window.hurt=1>"

# Drops a folder: scripts can't make entries of real folders, so these answer as such entries do, one at a time.
_DROP = """([name, files]) => {
  const file = (path, text) => ({ isFile: true, isDirectory: false, name: path.split("/").pop(),
    file: (done) => done(new File([Uint8Array.from(atob(text), (c) => c.charCodeAt(0))], path.split("/").pop())) });
  const folder = (name, files) => {
    const inside = new Map();
    for (const [path, text] of files) {
      const [first, ...rest] = path.split("/");
      if (rest.length) inside.set(first, [...(inside.get(first) || []), [rest.join("/"), text]]);
      else inside.set(first, text);
    }
    const entry = ([key, value]) => (typeof value === "string" ? file(key, value) : folder(key, value));
    const entries = [...inside].map(entry);
    return { isFile: false, isDirectory: true, name,
      createReader: () => ({ readEntries: (done) => done(entries.splice(0, 1)) }) };
  };
  const event = new Event("drop", { bubbles: true, cancelable: true });
  event.dataTransfer = { items: [{ webkitGetAsEntry: () => folder(name, files) }] };
  document.getElementById("drop").dispatchEvent(event);
}"""

Open = Callable[..., Any]

running, server = running_service.running, running_service.server


@pytest.fixture
def guarded(tmp_path: Path) -> Iterator[RunningService]:
    """Returns a server that asks for tokens."""
    with RunningService(tmp_path / "guarded", require_token=True) as guarded:
        yield guarded


@pytest.fixture
def open_page(chromium: Any, server: RunningService) -> Iterator[Open]:
    """Returns a function that opens the page; at the end nothing must have gone wrong in a script."""
    contexts, problems = [], []

    def open_page(
        path: str = "", *, scheme: str = "light", size: tuple[int, int] = (1000, 900), at: RunningService = server
    ) -> Any:
        viewport = {"width": size[0], "height": size[1]}
        context = chromium.new_context(viewport=viewport, color_scheme=scheme, reduced_motion="reduce")
        context.set_default_timeout(60_000)
        contexts.append(context)
        page = context.new_page()
        page.on("pageerror", lambda problem: problems.append(str(problem)))
        page.on("console", lambda said: problems.append(said.text) if "Security Policy" in said.text else None)
        page.goto(at.url + path)
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert problems == []


def _violations(page: Any) -> list[Any]:
    """Returns what axe finds in the page; the report in the frame is a page of its own, tested as such."""
    found = page.evaluate(f"{AXE}; axe.run({{ iframes: false }})")["violations"]
    return [(each["id"], [node["html"] for node in each["nodes"]]) for each in found]


def _until(page: Any, expression: str) -> None:
    """Waits for an expression; Playwright's own way evaluates it in the page, whose policy forbids that."""
    end = time.monotonic() + 60
    while not page.evaluate(expression):
        assert time.monotonic() < end, expression
        page.wait_for_timeout(20)


def _drop(page: Any, name: str, folder: Path) -> None:
    files = [
        [str(path.relative_to(folder)), base64.b64encode(path.read_bytes()).decode()]
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    ]
    page.evaluate(_DROP, [name, files])
    _until(page, "document.getElementById('picked').textContent")


def _convert(page: Any, folder: Path) -> None:
    page.set_input_files("#folder", folder)
    page.click("#submit")
    page.wait_for_selector("#job .state.succeeded, #job .state.failed, #form-problem:not(:empty)")
    assert not page.locator("#findings >> text=Why it failed").all_inner_texts()
    page.wait_for_selector("text=Open the report")


def test_drop_stages_report_download(
    open_page: Open, server: RunningService, digits_model: Path, tmp_path: Path, run_tflite: RunTFLite
) -> None:
    page = open_page()
    server.hold()
    name = "a rather long name of a folder, " + "é" * 60
    _drop(page, name, digits_model)
    assert page.inner_text("#picked").startswith(f"{name}.tar: 4 files, 252.6 kB")
    page.click("#submit")
    page.wait_for_selector(".state.queued")
    server.release()
    page.wait_for_selector("#job .state.succeeded")
    page.wait_for_selector("text=Open the report")
    assert page.is_hidden("#stages li")
    page.click("#stages-title")
    stages = page.locator("#stages li").all_inner_texts()
    assert [stage.split()[0] for stage in stages[:2]] == ["unpack", "open"]
    assert stages[-1] == "write"
    _until(page, "document.getElementById('live').textContent.includes('is converted')")
    page.click("text=Open the report")
    frame = page.wait_for_selector("iframe.report").content_frame()
    frame.wait_for_selector("#summary .tiles")
    assert frame.evaluate("self.origin") == "null"
    assert page.is_hidden("#job")
    assert page.evaluate("innerHeight - document.querySelector('iframe.report').offsetHeight") < 80
    assert _violations(page) == []
    page.click("text=Back to the job")
    _until(page, "document.activeElement.id === 'job-title'")
    assert page.locator("iframe").count() == 0
    with page.expect_download() as download:
        page.click("text=Download the model")
    assert download.value.suggested_filename == f"{name}.tflite"
    download.value.save_as(tmp_path / "model.tflite")
    (scores,) = run_tflite((tmp_path / "model.tflite").read_bytes(), [np.zeros([1, 8, 8, 1], np.float32)])
    assert scores.shape == (1, 10)
    with page.expect_download() as download:
        page.click("text=Report (JSON)")
    assert json.loads(Path(download.value.path()).read_text("utf-8"))["operators"]
    assert page.locator("#jobs tbody tr").count() == 1


def test_options_are_sent(open_page: Open, server: RunningService, digits_model: Path, tmp_path: Path) -> None:
    np.savez(tmp_path / "samples.npz", pixels=np.random.default_rng(0).random((4, 8, 8, 1), np.float32))
    page = open_page()
    assert page.is_hidden("#samples")
    page.select_option("#quantize", "int8")
    page.set_input_files("#samples", tmp_path / "samples.npz")
    page.fill("#batch", "1")
    page.check("#verify")
    page.click("#more-settings > summary")
    page.check("#set-allow_custom_ops")
    page.check("#set-accelerator-gpu")
    page.check("#set-accelerator-npu")
    page.fill("#set-signatures", "serving_default")
    page.select_option("#set-quantize-io", label="int8")
    page.click("#rare-settings > summary")
    page.fill("#set-verify-min_snr", "3")
    page.fill("#more", '{"metadata": {"description": "Digits"}}')
    _convert(page, digits_model)
    (job,) = server.jobs
    assert job.settings == {
        "batch": 1,
        "quantize": {"mode": "int8", "io": "int8"},
        "verify": {"min_snr": 3},
        "allow_custom_ops": True,
        "accelerator": ["gpu", "npu"],
        "signatures": ["serving_default"],
        "metadata": {"description": "Digits"},
    }
    assert job.calibration_sha256
    told = page.inner_text("#job-settings")
    assert "Quantization: int8" in told
    assert "Type of inputs and outputs: int8" in told
    assert "Custom ops" in told
    tiles = page.inner_text("#outcome")
    assert "Fidelity" in tiles
    assert "on the GPU" in tiles
    row = page.inner_text("#jobs tbody tr")
    assert "Quantization: int8" in row
    assert "verified" in row
    page.click("text=Change the settings")
    _until(page, "document.activeElement.id === 'convert-title'")
    values = {
        each: page.input_value(f"#{each}") for each in ("quantize", "batch", "set-signatures", "set-verify-min_snr")
    }
    assert values == {"quantize": "int8", "batch": "1", "set-signatures": "serving_default", "set-verify-min_snr": "3"}
    assert page.input_value("#set-quantize-io") == '"int8"'
    assert page.is_checked("#set-accelerator-npu")
    assert json.loads(page.input_value("#more")) == {"metadata": {"description": "Digits"}}
    page.fill("#set-verify-min_snr", "2")
    page.click("#submit")
    _until(page, "document.querySelectorAll('#jobs tbody tr').length === 2")
    first, second = server.jobs
    assert second.settings == {**first.settings, "verify": {"min_snr": 2}}
    assert (second.model_sha256, second.calibration_sha256) == (first.model_sha256, first.calibration_sha256)


def test_wrong_fields_and_missing_samples_are_told_before_anything_is_sent(
    open_page: Open, server: RunningService, digits_model: Path, tmp_path: Path
) -> None:
    page = open_page()
    page.set_input_files("#folder", digits_model)
    page.click("#more-settings > summary")
    page.fill("#set-input_shapes", "pixels: 1, eight, 8, 1")
    page.click("#more-settings > summary")
    page.click("#submit")
    assert 'Input shapes: "eight" is not a size' in page.inner_text("#form-problem")
    assert page.evaluate("document.activeElement.id") == "set-input_shapes"
    page.fill("#set-input_shapes", "pixels: 1, 8, 8, 1")
    page.select_option("#quantize", "int8")
    page.click("#submit")
    message, hint = page.locator("#form-problem p").all_inner_texts()
    assert "needs calibration samples" in message
    assert "dynamic" in hint
    assert page.evaluate("document.activeElement.id") == "samples"
    assert server.jobs == []
    page.check("#trained")
    page.click("#submit")
    page.wait_for_selector("#job .state.failed")
    (job,) = server.jobs
    assert job.settings == {"quantize": {"mode": "int8", "trained": True}, "input_shapes": {"pixels": [1, 8, 8, 1]}}
    assert "Trained for quantization" in page.inner_text("#job-settings")
    page.click("text=Change the settings")
    _until(page, "document.activeElement.id === 'convert-title'")
    assert page.is_checked("#trained")
    np.savez(tmp_path / "samples.npz", pixels=np.zeros((2, 8, 8, 1), np.float32))
    page.set_input_files("#samples", tmp_path / "samples.npz")
    assert not page.is_checked("#trained")
    page.check("#trained")
    assert page.inner_text("#samples-picked") == ""


def test_settings_that_a_target_lacks_are_not_sent(open_page: Open, server: RunningService, digits_model: Path) -> None:
    page = open_page()
    page.click("#more-settings > summary")
    page.select_option("#quantize", "int8")
    page.check("#set-allow_flex")
    page.select_option("#target", "stablehlo")
    assert page.is_hidden("#set-allow_flex")
    assert page.is_hidden("#samples-field")
    page.click("#rare-settings > summary")
    page.select_option("#set-mlir_weights", label="inline")
    _convert(page, digits_model)
    (job,) = server.jobs
    assert job.settings == {"target": "stablehlo", "mlir_weights": "inline"}


_INVERSE = """node { name: "x" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } }
  attr { key: "shape" value { shape { dim { size: 40 } dim { size: 40 } } } } }
node { name: "a" op: "MatrixInverse" input: "x" attr { key: "T" value { type: DT_FLOAT } } }
node { name: "b" op: "Cholesky" input: "a" attr { key: "T" value { type: DT_FLOAT } } }
"""


def test_a_failure_tells_each_hint_once_and_offers_what_helps(
    open_page: Open, server: RunningService, tmp_path: Path
) -> None:
    (tmp_path / "model.pbtxt").write_text(_INVERSE)
    page = open_page()
    page.set_input_files("#file", tmp_path / "model.pbtxt")
    page.click("#submit")
    page.wait_for_selector("#findings .problems")
    (group,) = page.locator("#findings li").all()
    assert group.locator("p").count() == 3
    text = page.inner_text("#findings")
    assert text.count("Compute it before or after the model") == 1
    assert "Select TF ops" in text
    assert "--" not in text
    page.click("text=Try again with Select TF ops")
    page.wait_for_selector("#job .state.succeeded")
    first, second = server.jobs
    assert (first.settings, second.settings) == ({}, {"allow_flex": True})
    assert first.model_sha256 == second.model_sha256
    assert page.locator("text=Try again with Select TF ops").count() == 0


def test_deleting_asks_first(open_page: Open, server: RunningService) -> None:
    server.add("kept.tar", JobState.FAILED, 1e9, problem={"errors": [{"code": "x", "message": "y"}]})
    page = open_page(f"#job={server.jobs[0].id}")
    page.click("#actions >> text=Delete")
    assert page.inner_text("#asked-title") == "Delete kept.tar?"
    assert _violations(page) == []
    page.click("button:text-is('Keep')")
    assert len(server.jobs) == 1
    page.click("#actions >> text=Delete")
    page.click("#asked button:text-is('Delete')")
    page.wait_for_selector("text=No jobs yet.")
    assert server.jobs == []


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_keras_file_is_accepted_where_the_server_reads_such_files(open_page: Open, tmp_path: Path, tf: Any) -> None:
    path = tmp_path / "model.keras"
    tf.keras.Sequential([tf.keras.Input((8,)), tf.keras.layers.Dense(4)]).save(path)
    with RunningService(tmp_path / "without", keras=False) as without:
        page = open_page(at=without)
        page.set_input_files("#file", path)
        assert "accepted, too" not in page.inner_text("main")
        page.click("#submit")
        _until(page, "document.querySelectorAll('#form-problem p').length === 2")
        message, hint = page.locator("#form-problem p").all_inner_texts()
        assert message == "'model.keras' is a file of Keras, which only Keras can read."
        assert "model.export" in hint
    with RunningService(tmp_path / "reading", keras=True) as reading:
        page = open_page(at=reading)
        page.wait_for_selector("text=is accepted, too")
        page.set_input_files("#file", path)
        page.click("#submit")
        page.wait_for_selector("#job .state.succeeded", timeout=120_000)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_accessibility_and_small_screens(
    open_page: Open, server: RunningService, guarded: RunningService, digits_model: Path, tmp_path: Path, scheme: str
) -> None:
    page = open_page(scheme=scheme)
    page.wait_for_selector("text=No jobs yet.")
    assert _violations(page) == [], "empty"
    page.click("#submit")
    page.click("#more-settings > summary")
    page.click("#rare-settings > summary")
    page.select_option("#quantize", "int8")
    page.check("#verify")
    assert "Choose a model" in page.inner_text("#form-problem")
    assert _violations(page) == [], "a form that is not complete"
    page.select_option("#quantize", "")
    page.uncheck("#verify")
    server.hold()
    page.set_input_files("#folder", digits_model)
    page.click("#submit")
    page.wait_for_selector("#job .state.queued")
    assert _violations(page) == [], "waiting"
    server.release()
    page.wait_for_selector("text=Open the report")
    assert _violations(page) == [], "succeeded"
    (tmp_path / "model.zip").write_bytes(b"no archive")
    page.set_input_files("#file", tmp_path / "model.zip")
    page.click("#submit")
    page.wait_for_selector("#form-problem:not(:empty)")
    assert _violations(page) == [], "refused"
    (tmp_path / "model.pbtxt").write_text('node { name: "x" op: "NoSuchOp" }')
    page.set_input_files("#file", tmp_path / "model.pbtxt")
    page.click("#submit")
    page.wait_for_selector("#job .state.failed")
    assert _violations(page) == [], "failed"
    page = open_page(scheme=scheme, at=guarded)
    page.wait_for_selector("#access")
    assert _violations(page) == [], "a token is needed"


def test_everything_works_by_keyboard(open_page: Open, digits_model: Path) -> None:
    page = open_page()
    keyboard = page.keyboard
    # Chromium handles keys before messages: it must know that we choose the files well before the key is pressed.
    page.on("filechooser", lambda chooser: chooser.set_files(digits_model))

    def go_to(selector: str) -> None:
        for _ in range(40):
            keyboard.press("Tab")
            if page.evaluate("selector => document.activeElement.matches(selector)", selector):
                return
        raise AssertionError(selector)

    keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the form"
    keyboard.press("Enter")
    go_to("#folder")
    keyboard.press("Enter")
    _until(page, "document.getElementById('picked').textContent")
    go_to("#quantize")
    keyboard.type("float16")
    go_to("#submit")
    keyboard.press("Enter")
    page.wait_for_selector("#job .state.succeeded")
    assert page.evaluate("document.activeElement.id") == "job-title"
    go_to("#actions .strong")
    with page.expect_download():
        keyboard.press("Enter")
    go_to("#actions a")
    keyboard.press("Enter")
    page.wait_for_selector("iframe.report")
    assert page.evaluate("document.activeElement.id") == "report-back"
    keyboard.press("Enter")
    _until(page, "document.activeElement.id === 'job-title'")
    go_to("#jobs a")
    keyboard.press("Enter")
    _until(page, "document.activeElement.id === 'job-title'")
    page.wait_for_selector("#actions")
    while page.evaluate("document.activeElement.textContent") != "Delete":
        keyboard.press("Tab")
    keyboard.press("Enter")
    assert page.evaluate("document.activeElement.textContent") == "Keep"
    keyboard.press("Shift+Tab")
    keyboard.press("Enter")
    page.wait_for_selector("text=No jobs yet.")
    assert page.evaluate("document.activeElement.id") == "jobs-title"
    assert page.is_hidden("#job")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_small_phone_needs_no_sideways_scrolling(open_page: Open, digits_model: Path, scheme: str) -> None:
    page = open_page(size=(320, 640), scheme=scheme)
    _convert(page, digits_model)
    assert page.evaluate("[innerWidth, document.documentElement.scrollWidth]") == [320, 320]
    assert _violations(page) == []
    assert min(button.bounding_box()["height"] for button in page.locator(".button:visible").all()) >= 40


def test_hostile_names_are_shown_and_do_nothing(open_page: Open, server: RunningService, digits_model: Path) -> None:
    page = open_page()
    _drop(page, HOSTILE, digits_model)
    page.click("#submit")
    page.wait_for_selector("#job .state.succeeded")
    page.wait_for_selector("#jobs tbody tr")
    assert page.inner_text("#job-title") == f"{HOSTILE}.tar"
    assert page.inner_text("#jobs tbody a") == f"{HOSTILE}.tar"
    problem = {"errors": [{"code": HOSTILE, "message": f"{HOSTILE}\u202e", "hint": HOSTILE}]}
    server.clear()
    server.add(HOSTILE, JobState.FAILED, 1.0, problem=problem)
    page = open_page(f"#job={server.jobs[0].id}")
    page.wait_for_selector("#job .state.failed")
    page.wait_for_selector("#findings li")
    assert HOSTILE in page.inner_text("#findings")
    assert "\\u{202e}" in page.inner_text("#findings")
    assert page.locator("img").count() == 0
    assert page.evaluate("window.hurt") is None


def test_the_frame_shows_only_what_the_page_hands_over(open_page: Open) -> None:
    page = open_page("page/frame.html")
    page.evaluate("postMessage('<p id=shown>shown</p>', '*')")
    page.wait_for_timeout(100)
    assert page.locator("#shown").count() == 0


def test_a_job_that_waits_is_cancelled_and_tried_again(
    open_page: Open, server: RunningService, digits_model: Path
) -> None:
    page = open_page()
    server.hold()
    page.set_input_files("#folder", digits_model)
    page.click("#submit")
    page.click("button:text-is('Cancel')")
    page.wait_for_selector("#job .state.cancelled")
    assert page.locator("text=Download the model").count() == 0
    server.release()
    page.click("button:text-is('Try again')")
    page.wait_for_selector("#job .state.succeeded")


def test_a_token_is_asked_for_and_kept_in_the_tab(open_page: Open, guarded: RunningService, digits_model: Path) -> None:
    page = open_page(at=guarded)
    page.wait_for_selector("#access")
    page.fill("#token", "wrong")
    page.keyboard.press("Enter")
    page.wait_for_selector("#trouble >> text=doesn't know this token")
    page.fill("#token", guarded.token())
    page.keyboard.press("Enter")
    page.wait_for_selector("text=No jobs yet.")
    assert page.is_hidden("#access")
    assert page.is_hidden("#trouble")
    _convert(page, digits_model)
    with page.expect_download() as download:
        page.click("text=Download the model")
    assert Path(download.value.path()).stat().st_size > 1000
    page.reload()
    page.click("text=Open the report")
    page.wait_for_selector("iframe.report")
    assert page.evaluate("[localStorage.length, document.cookie]") == [0, ""]


@pytest.mark.parametrize(
    ("status", "headers", "text"),
    [
        (413, {}, "exceeds the server's size limit"),
        (429, {"Retry-After": "7"}, "Try again in 7 seconds"),
        (503, {"Retry-After": "3"}, "Try again in 3 seconds"),
        (502, {}, "status 502"),
        (0, {}, "can't be reached"),
    ],
)
def test_refusals_are_reported(
    open_page: Open, digits_model: Path, status: int, headers: dict[str, str], text: str
) -> None:
    page = open_page()
    keys = []

    def answer(route: Any) -> None:
        if route.request.method != "POST":
            route.fallback()
            return
        keys.append(route.request.headers["idempotency-key"])
        if not status:
            route.abort()
        elif len(keys) == 1:
            route.fulfill(status=status, headers=headers, body="<h1>not JSON</h1>")

    page.route("**/v1/jobs", answer)
    page.set_input_files("#folder", digits_model)
    page.click("#submit")
    _until(page, "document.getElementById('form-problem').textContent")
    assert text in page.inner_text("#form-problem")
    page.click("#submit")
    while len(keys) < 2:
        page.wait_for_timeout(10)
    assert keys[0] == keys[1]


def test_a_lost_connection_is_made_anew(open_page: Open, server: RunningService, digits_model: Path) -> None:
    page = open_page()
    server.hold()
    lost = []

    def lose(route: Any) -> None:
        lost.append(route.request.headers.get("last-event-id"))
        if len(lost) == 1:
            head = 'id: 1\nevent: state\ndata: {"name": "queued", "at": 1}\n\n'
            route.fulfill(status=200, headers={"Content-Type": "text/event-stream"}, body=head)
        elif len(lost) == 2:
            route.abort()
        else:
            route.fallback()

    page.route("**/events", lose)
    page.set_input_files("#folder", digits_model)
    page.click("#submit")
    page.wait_for_selector("text=The connection to the server is lost")
    server.release()
    page.wait_for_selector("#job .state.succeeded")
    assert lost[1:] == ["1"] * (len(lost) - 1)


def test_jobs_are_filtered_and_paged(open_page: Open, server: RunningService) -> None:
    for number in range(45):
        state = JobState.FAILED if number % 3 else JobState.SUCCEEDED
        server.add(f"model {number}", state, 1e9 + number)
    page = open_page()
    names = page.locator("#jobs tbody th")
    page.wait_for_selector("text=model 44")
    assert names.count() == 20
    assert page.is_disabled("#newer")
    for first in ("model 24", "model 4"):
        page.click("#older")
        _until(page, f"document.querySelector('#jobs tbody th').textContent === '{first}'")
        assert page.evaluate("document.activeElement.id") == "jobs-title"
    assert names.count() == 5
    assert page.is_disabled("#older")
    page.click("#newer")
    page.wait_for_selector("text=model 24")
    page.select_option("#filter-state", "succeeded")
    page.wait_for_selector("text=model 42")
    assert names.count() == 15
    page.fill("#filter-name", "model 4")
    _until(page, "document.querySelectorAll('#jobs tbody tr').length === 1")
    page.fill("#filter-name", "no such")
    page.wait_for_selector("text=No job matches.")


def test_a_low_fidelity_is_marked(open_page: Open, server: RunningService) -> None:
    for name, is_low in (("ruined.tar", True), ("fine.tar", False)):
        fidelity = {"is_low": is_low, "snr": 12.34 if is_low else None, "agreement": 0.87 if is_low else 1.0}
        server.add(name, JobState.SUCCEEDED, time.time(), summary={"size": 10, "fidelity": fidelity})
    page = open_page()
    page.wait_for_selector("#jobs-body tr:nth-child(2)")
    rows = {row.locator("th").inner_text(): row.inner_text() for row in page.locator("#jobs-body tbody tr").all()}
    assert {name: "low fidelity" in text for name, text in rows.items()} == {"ruined.tar": True, "fine.tar": False}
    page.click("text=ruined.tar")
    page.wait_for_selector("#outcome .tile.bad")
    assert page.inner_text("#outcome .tile.bad").split("\n") == ["Fidelity", "12.3 dB", "87% same top-1"]
    assert "low fidelity" in page.inner_text("#job-state")
    assert _violations(page) == []
