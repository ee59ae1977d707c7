"""Jobs over HTTP: submitted, listed, changed, and what they have made."""

from __future__ import annotations

import asyncio
import json
import logging
import threading
import time
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.batch.models import RELU
from tests.service.serving import MADE, Serving, packed, refusal
from tfconvert.service.http import jobs as jobs_of_http
from tfconvert.service.jobs import JobRecord
from tfconvert.service.storage import PAGE


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Serving:
    return Serving(tmp_path_factory.mktemp("shared"), max_upload=100_000, idle=0.2, per_minute=0)


@pytest.fixture
def server(tmp_path: Path) -> Serving:
    return Serving(tmp_path / "data", roots=(str(tmp_path / "models"),), max_upload=100_000, keras=False)


def test_a_submission_is_a_job(server: Serving) -> None:
    response = server.submit(options={"quantize": "dynamic"})
    assert response.status_code == 202
    job = response.json()
    assert response.headers["Location"] == f"/v1/jobs/{job['id']}"
    assert job["state"] == "queued"
    assert job["model_name"] == "model.mlir"
    assert job["settings"] == {"quantize": "dynamic"}
    assert job["size_in"] == len(RELU)
    assert job["links"].keys() == {"self", "events", "cancel"}
    assert server.client.get(response.headers["Location"]).json() == job
    assert [path.read_text() for path in server.service.folders.models.iterdir()] == [RELU]
    assert not server.leftovers()


def test_a_place_is_named(server: Serving, tmp_path: Path) -> None:
    response = server.client.post("/v1/jobs", files={"place": (None, f"{tmp_path}/models/first")})
    assert response.status_code == 202
    assert response.json()["model_name"] == "first"
    assert response.json()["place"] == f"{tmp_path}/models/first"
    for place in ("/etc/passwd", f"{tmp_path}/models/../secret", "http://169.254.169.254/", "models"):
        response = server.client.post("/v1/jobs", files={"place": (None, place)})
        assert refusal(response) == (403, "place-not-allowed")


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ("{", "bad-config"),
        ("[]", "bad-config"),
        ('{"quantise": "dynamic"}', "bad-config"),
        ('{"patterns": ["/etc/passwd"]}', "bad-config"),
        ('{"metadata": {"outputs": {"y": {"labels": "/etc/passwd"}}}}', "bad-config"),
        ('{"batch": NaN}', "bad-config"),
        ('{"metadata": {"x": 1e999}}', "bad-config"),
        ('{"metadata": {"x": 1' + "0" * 30 + "}}", "bad-config"),
        ('{"metadata": {"x": 1' + "0" * 5000 + "}}", "bad-config"),
        ('{"metadata": ' + '{"a":' * 100 + "1" + "}" * 100 + "}", "bad-config"),
        ("[" * 100_000, "bad-config"),
        ('{"inputs": ["\\ud800"]}', "bad-config"),
        ('{"inputs": ["\\u0000"]}', "bad-config"),
        ('{"rename": {"\\udfff": "x"}}', "bad-config"),
    ],
    ids=lambda value: str(value)[:24],
)
def test_wrong_options_are_refused(shared: Serving, options: str, code: str) -> None:
    assert refusal(shared.submit(options=options)) == (400, code)
    assert not list(shared.service.folders.models.iterdir())
    assert not shared.leftovers()


def test_the_model_of_a_job_is_converted_again(server: Serving) -> None:
    samples = {"calibration": ("s.npz", b"PK\x05\x06" + bytes(18))}
    files = {"model": ("net.mlir", RELU), "options": (None, '{"quantize": "int8"}'), **samples}
    first = server.client.post("/v1/jobs", files=files).json()
    assert first["has_samples"]
    form = {"job": (None, first["id"]), "options": (None, '{"quantize": "int16"}')}
    second = server.client.post("/v1/jobs", files=form).json()
    assert second["id"] != first["id"]
    assert (second["model_name"], second["settings"]) == ("net.mlir", {"quantize": "int16"})
    one, other = (server.service.store.get(job["id"], None) for job in (first, second))
    assert (one.model_sha256, one.calibration_sha256) == (other.model_sha256, other.calibration_sha256)
    third = server.client.post("/v1/jobs", files={"job": (None, first["id"])}).json()
    assert not third["has_samples"]
    both = {"job": (None, first["id"]), "model": ("net.mlir", RELU)}
    assert refusal(server.client.post("/v1/jobs", files=both)) == (400, "bad-request")
    for unknown in ("0" * 32, "..", ""):
        response = server.client.post("/v1/jobs", files={"job": (None, unknown)})
        assert refusal(response) == (404, "job-not-found")


def test_the_model_of_a_job_of_others_is_not_converted(tmp_path: Path) -> None:
    server = Serving(tmp_path / "guarded", require_token=True)
    one, other = server.token("one"), server.token("other")
    job = server.submitted(headers=one)
    form = {"job": (None, job)}
    assert refusal(server.client.post("/v1/jobs", files=form, headers=other)) == (404, "job-not-found")
    assert server.client.post("/v1/jobs", files=form, headers=one).status_code == 202


def test_odd_names_do_no_harm(server: Serving) -> None:
    for sent, kept in (
        ("../../etc/passwd.mlir", "passwd.mlir"),
        ("a\\b.mlir", "b.mlir"),
        ("..", ".."),
        ("\u202egnp.mlir", "gnp.mlir"),
        ("<img onerror>", "<img onerror>"),
        ("n" * 999, "n" * 200),
        ("é\U0001f600.mlir", "é\U0001f600.mlir"),
    ):
        response = server.client.post("/v1/jobs", files={"model": (sent, RELU)})
        assert response.json()["model_name"] == kept


def test_invalid_models_are_rejected(server: Serving) -> None:
    assert refusal(server.submit(b"\x89HDF\r\n\x1a\n")) == (415, "keras-file")
    assert refusal(server.submit(b"hello world, this is text")) == (415, "unknown-model")
    response = server.submit(b"GGUF" + bytes(100))
    assert refusal(response) == (415, "foreign-format")
    assert response.json()["detail"].startswith("model.mlir is a model of llama.cpp")
    response = server.submit(b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1\n")
    assert refusal(response) == (415, "foreign-format")
    assert "pointer of Git LFS" in response.text
    assert str(server.config.data) not in response.text
    assert refusal(server.submit(b"")) == (400, "bad-request")
    assert refusal(server.submit(b"x" * 100_001)) == (413, "upload-too-large")
    assert not server.leftovers()
    assert server.submit(packed()).status_code == 202


def test_calibration_goes_with_quantizing(server: Serving) -> None:
    response = server.submit(options={"quantize": "int8"}, calibration=b"PK\x03\x04")
    assert response.status_code == 202
    assert len(list(server.service.folders.models.iterdir())) == 2
    assert refusal(server.submit(calibration=b"PK\x03\x04")) == (400, "bad-request")
    for quantize in ("dynamic", {"mode": "int8", "trained": True}, {"mode": "int8", "trained_only": True}):
        response = server.submit(options={"quantize": quantize}, calibration=b"PK\x03\x04")
        assert refusal(response) == (400, "bad-request")
        assert "'calibration'" in response.json()["detail"]


@pytest.mark.parametrize("mode", ["int8", "int16"])
def test_integers_need_samples_unless_the_model_is_said_to_be_trained_for_them(server: Serving, mode: str) -> None:
    for quantize in (mode, {"mode": mode}, {"mode": mode, "strict": True}):
        response = server.submit(options={"quantize": quantize})
        assert refusal(response) == (422, "no-samples")
        assert response.json()["detail"].startswith("'calibration' is missing")
        assert f'{{"quantize": {{"mode": "{mode}", "trained": true}}}}' in response.json()["diagnostics"][0]["hint"]
    assert not list(server.service.folders.models.iterdir())
    for more in ({"trained": True}, {"trained_only": True}, {"default_range": [-1, 1]}):
        assert server.submit(options={"quantize": {"mode": mode, **more}}).status_code == 202
    job = server.submitted()
    form = {"job": (None, job), "options": (None, json.dumps({"quantize": mode}))}
    assert refusal(server.client.post("/v1/jobs", files=form)) == (422, "no-samples")


def test_samples_of_a_job_are_used_again_only_where_they_are_of_use(server: Serving) -> None:
    job = server.submitted(options={"quantize": "int8"}, calibration=b"PK\x03\x04")
    for quantize, expected in (
        ("int16", True),
        ({"mode": "int8", "io": "int8"}, True),
        ("dynamic", False),
        ({"mode": "int8", "trained": True}, False),
        ({"mode": "int8", "trained_only": True}, False),
    ):
        form = {"job": (None, job), "options": (None, json.dumps({"quantize": quantize}))}
        response = server.client.post("/v1/jobs", files=form)
        assert (response.status_code, response.json()["has_samples"]) == (202, expected)


def test_an_idempotency_key_makes_one_job(server: Serving) -> None:
    key = {"Idempotency-Key": "build 17"}
    first, second = server.submit(headers=key), server.submit(headers=key)
    assert (first.status_code, second.status_code) == (202, 200)
    assert first.json() == second.json()
    assert refusal(server.submit(options={"verify": True}, headers=key)) == (422, "idempotency-mismatch")
    assert server.submit(headers={"Idempotency-Key": "other"}).status_code == 202
    for wrong in ("", "x" * 201, "t\tb"):
        assert refusal(server.submit(headers={"Idempotency-Key": wrong}))[1] == "bad-request"


def test_jobs_are_listed_in_pages(server: Serving) -> None:
    made = [server.submitted(options={"batch": number}) for number in range(1, 6)]
    server.service.store.cancel(made[2], "")
    found: list[str] = []
    query: dict[str, Any] = {"limit": 2}
    while True:
        page = server.client.get("/v1/jobs", params=query).json()
        found += [job["id"] for job in page["jobs"]]
        if page["next"] is None:
            break
        query["cursor"] = page["next"]
    assert found == made[::-1]
    assert [job["id"] for job in server.client.get("/v1/jobs?state=cancelled").json()["jobs"]] == [made[2]]
    assert len(server.client.get("/v1/jobs?name=odel.ml").json()["jobs"]) == 5
    assert not server.client.get("/v1/jobs?name=%25").json()["jobs"]
    for wrong in ("limit=0", "limit=x", "state=lost", "cursor=%00", "cursor=zzz", "name=%00", "name=" + "x" * 201):
        status, _ = refusal(server.client.get(f"/v1/jobs?{wrong}"))
        assert status in (400, 422), wrong


def test_jobs_are_cancelled_retried_and_deleted(server: Serving) -> None:
    job = f"/v1/jobs/{server.submitted()}"
    assert refusal(server.client.post(f"{job}/retry")) == (409, "job-state")
    server.end(job.split("/")[3], "running")
    assert refusal(server.client.delete(job)) == (409, "job-state")
    server.end(job.split("/")[3], "queued")
    assert server.client.post(f"{job}/cancel").json()["state"] == "cancelled"
    assert refusal(server.client.post(f"{job}/cancel")) == (409, "job-state")
    retried = server.client.post(f"{job}/retry")
    assert (retried.status_code, retried.json()["state"]) == (202, "queued")
    server.client.post(f"{job}/cancel")
    deleted = server.client.delete(job)
    assert (deleted.status_code, deleted.content) == (204, b"")
    for method, path in (
        ("GET", ""),
        ("DELETE", ""),
        ("POST", "/cancel"),
        ("POST", "/retry"),
        ("GET", "/result"),
        ("GET", "/events"),
    ):
        assert refusal(server.client.request(method, job + path)) == (404, "job-not-found")


@pytest.mark.parametrize("id", ["x", "%00", "0" * 31, "../secret", "é" * 32, "0" * 32])
def test_ids_that_are_none_are_not_found(shared: Serving, id: str) -> None:
    status, code = refusal(shared.client.get(f"/v1/jobs/{id}"))
    assert (status, code) in ((404, "job-not-found"), (404, "not-found"))


def test_results_of_a_job_can_be_downloaded(server: Serving) -> None:
    job = server.submitted()
    assert refusal(server.client.get(f"/v1/jobs/{job}/result")) == (404, "no-result")
    server.end(job)
    assert server.client.get(f"/v1/jobs/{job}").json()["links"]["result"] == f"/v1/jobs/{job}/result"
    result = server.client.get(f"/v1/jobs/{job}/result")
    assert result.content == MADE["model.tflite"]
    assert result.headers["content-type"] == "application/octet-stream"
    assert result.headers["content-disposition"] == 'attachment; filename="model.tflite"'
    assert server.client.get(f"/v1/jobs/{job}/report").json() == {"ok": True}
    assert server.client.get(f"/v1/jobs/{job}/log").text == "said\n"
    page = server.client.get(f"/v1/jobs/{job}/report.html")
    assert page.text == "<!doctype html>hello"
    assert "sandbox" in page.headers["content-security-policy"]


def test_a_link_is_not_a_result(server: Serving, tmp_path: Path) -> None:
    job = server.submitted()
    server.end(job)
    (tmp_path / "secret").write_text("secret")
    result = server.service.folders.result(job, 1) / "model.tflite"
    result.unlink()
    result.symlink_to(tmp_path / "secret")
    assert refusal(server.client.get(f"/v1/jobs/{job}/result")) == (404, "no-result")


def test_pages_are_made_once_when_they_are_requested(server: Serving, monkeypatch: pytest.MonkeyPatch) -> None:
    jobs = [server.submitted(RELU.encode() + bytes([65 + number])) for number in range(3)]
    busy: list[str] = []
    made: list[str] = []

    def make_page(job: JobRecord) -> None:
        busy.append(job.id)
        assert len(busy) == 1  # As many as the server runs jobs, or one if it runs none.
        path = server.service.folders.result(job.id, 1) / PAGE
        if not path.exists():
            time.sleep(0.05)
            made.append(job.id)
            path.write_text(f"page of {job.id}")
        busy.remove(job.id)

    monkeypatch.setattr(server.service.workers, "make_page", make_page)
    waiting = server.submitted(RELU.encode() + b"d")
    for job in jobs:
        server.end(job)
        (server.service.folders.result(job, 1) / PAGE).unlink()

    async def request() -> list[httpx.Response]:
        transport = httpx.ASGITransport(server.app)
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
            paths = [f"/v1/jobs/{job}/report.html" for job in (*jobs, jobs[0], waiting)]
            return await asyncio.gather(*map(client.get, paths))

    *pages, none = asyncio.run(request())
    assert [page.text for page in pages] == [f"page of {job}" for job in (*jobs, jobs[0])]
    assert refusal(none) == (404, "no-result")
    assert sorted(made) == sorted(jobs)
    assert not server.service.pages


def test_a_page_that_takes_long_holds_up_nobody(server: Serving, monkeypatch: pytest.MonkeyPatch) -> None:
    slow, other = server.submitted(RELU.encode() + b"slow"), server.submitted(RELU.encode() + b"other")
    server.end(slow)
    server.end(other)
    path = server.service.folders.result(slow, 1) / PAGE
    path.unlink()
    finish = threading.Event()
    made: list[str] = []

    def make_page(job: JobRecord) -> None:
        made.append(job.id)
        assert finish.wait(60)
        path.write_text("drawn")

    monkeypatch.setattr(server.service.workers, "make_page", make_page)
    monkeypatch.setattr(jobs_of_http, "_PAGE_SECONDS", 0.05)
    logged: list[object] = []
    monkeypatch.setattr(
        logging.getLogger("tfconvert.service.http.problems"), "error", lambda *args: logged.append(args)
    )

    async def request() -> None:
        transport = httpx.ASGITransport(server.app)
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
            for _ in range(2):
                late = await client.get(f"/v1/jobs/{slow}/report.html")
                assert refusal(late) == (503, "page-not-ready")
                assert late.headers["retry-after"] == "1"
                assert (await client.get(f"/v1/jobs/{other}/report.html")).text == "<!doctype html>hello"
                assert (await client.get(f"/v1/jobs/{slow}/report")).json() == {"ok": True}
            finish.set()
            while server.service.pages:
                await asyncio.sleep(0.01)
            assert (await client.get(f"/v1/jobs/{slow}/report.html")).text == "drawn"

    asyncio.run(request())
    assert made == [slow]
    assert not logged
    assert not server.service.pages


def test_head_is_answered_where_get_is(server: Serving) -> None:
    done, waiting = server.submitted(), server.submitted()
    server.end(done)
    parts = ("", "/result", "/result/safetensors", "/report", "/report.html", "/log", "/events")
    paths = [f"/v1/jobs/{job}{part}" for job in (done, waiting) for part in parts if job is done or part != "/events"]
    for path in ("/", "/healthz", "/v1/jobs", "/v1/jobs?limit=0", "/v1/ops", "/openapi.json", *paths):
        told, asked = server.client.request("HEAD", path), server.client.get(path)
        assert told.status_code == asked.status_code, path
        for name in ("content-type", "etag", "content-disposition", "content-security-policy"):
            assert told.headers.get(name) == asked.headers.get(name), (path, name)
    # It doesn't wait for a job that has not ended.
    assert server.client.request("HEAD", f"/v1/jobs/{waiting}/events").headers["content-type"].startswith("text/event")
    assert server.client.request("HEAD", f"/v1/jobs/{'0' * 32}").status_code == 404
    assert not any("head" in methods for methods in server.client.get("/openapi.json").json()["paths"].values())


def test_parts_of_results_are_downloaded(server: Serving) -> None:
    path = f"/v1/jobs/{server.submitted()}/result"
    server.end(path.split("/")[3])
    tag = server.client.get(path).headers["etag"]
    part = server.client.get(path, headers={"Range": "bytes=95-", "If-Range": tag})
    assert (part.status_code, part.content, part.headers["content-range"]) == (206, b"56789", "bytes 95-99/100")
    assert server.client.get(path, headers={"If-None-Match": f'"x", W/{tag}'}).status_code == 304
    assert server.client.get(path, headers={"Range": "bytes=95-", "If-Range": '"x"'}).status_code == 200
    assert server.client.get(path, headers={"Range": "bytes=200-"}).status_code == 416
    for wrong in ("bytes=a-b", "bytes=5-2", "lines=1-2", "bytes=" + ",".join(["0-1"] * 5000), "bytes=--1"):
        assert server.client.get(path, headers={"Range": wrong}).status_code in (200, 206, 400, 416), wrong


def test_failures_give_a_reason(server: Serving) -> None:
    job = server.submitted()
    problem = {
        "errors": [{"code": "unsupported-op", "message": "no", "op": "tf.X", "severity": "error"}],
        "advice": ["a"],
    }
    server.end(job, "failed", problem=problem)
    told = server.client.get(f"/v1/jobs/{job}").json()
    assert told["problem"]["errors"][0]["op"] == "tf.X"
    assert told["problem"]["advice"] == ["a"]
    assert refusal(server.client.get(f"/v1/jobs/{job}/report")) == (404, "no-result")


def test_events_are_sent_and_end(server: Serving) -> None:
    job = server.submitted()
    server.client.post(f"/v1/jobs/{job}/cancel")
    response = server.client.get(f"/v1/jobs/{job}/events")
    assert response.headers["content-type"].startswith("text/event-stream")
    blocks = [dict(line.split(": ", 1) for line in block.splitlines()) for block in response.text.split("\n\n")[1:-1]]
    assert [(block["event"], json.loads(block["data"]).get("name")) for block in blocks] == [
        ("state", "queued"),
        ("state", "cancelled"),
        ("end", None),
    ]
    for headers, query in (({"Last-Event-ID": "1"}, ""), ({}, "?after=1"), ({"Last-Event-ID": "x"}, "?after=1")):
        text = server.client.get(f"/v1/jobs/{job}/events{query}", headers=headers).text
        assert '"queued"' not in text
        assert '"cancelled"' in text


def test_the_queue_is_bounded(tmp_path: Path) -> None:
    server = Serving(tmp_path, max_queued=2)
    for number in (1, 2):
        server.submitted(options={"batch": number})
    response = server.submit(options={"batch": 3})
    assert refusal(response) == (429, "queue-full")
    assert int(response.headers["Retry-After"]) > 0
    server = Serving(tmp_path / "other", max_active=1)
    server.submitted()
    assert refusal(server.submit(options={"batch": 3})) == (429, "too-many-jobs")
