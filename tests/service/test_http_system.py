"""The server itself: health, metrics, the table of ops, the description of its interface, the page."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.service.serving import Serving, refusal
from tfconvert import supported_ops
from tfconvert.converter.process import sandbox
from tfconvert.schema.diagnostics import ConversionError, error
from tfconvert.service import server as server_module
from tfconvert.service.config import ServiceConfig
from tfconvert.service.database.connection import Database
from tfconvert.service.http.readiness import Check
from tfconvert.service.server import prepare_sandbox
from tfconvert.service.workers import WorkerPool


@pytest.fixture
def server(tmp_path: Path) -> Serving:
    return Serving(tmp_path / "data")


def test_health(server: Serving, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(WorkerPool, "is_alive", property(lambda pool: True))
    assert server.client.get("/healthz").json()["status"] == "ok"
    checks = server.client.get("/readyz").json()["checks"]
    assert checks.pop("sandbox") == (sandbox.problem() or "ok")
    assert checks == dict.fromkeys(("server", "database", "workers", "disk"), "ok")


@pytest.mark.parametrize("is_required", [False, True])
def test_jobs_that_can_not_be_confined_are_told(
    is_required: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(WorkerPool, "is_alive", property(lambda pool: True))
    monkeypatch.setattr(sandbox, "missing", lambda: {"files": "are free"})
    server = Serving(tmp_path / "data", require_sandbox=is_required)
    response = server.client.get("/readyz")
    assert response.status_code == (503 if is_required else 200)
    assert response.json()["checks"]["sandbox"] == "files are free"


def test_a_server_that_requires_the_sandbox_starts_only_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    logged: list[str] = []
    monkeypatch.setattr(server_module._LOG, "warning", lambda text, *values: logged.append(text % values))
    config = ServiceConfig(tmp_path, require_sandbox=True)
    monkeypatch.setattr(sandbox, "missing", dict)
    prepare_sandbox(config)
    monkeypatch.setattr(sandbox, "missing", lambda: {"files": "are free"})
    with pytest.raises(ConversionError, match="files are free") as caught:
        prepare_sandbox(config)
    assert caught.value.code == "no-sandbox"
    assert not logged
    prepare_sandbox(config._replace(workers=0))
    prepare_sandbox(config._replace(require_sandbox=False))
    assert logged == ["jobs are not wholly confined here: files are free"]


def test_a_server_that_can_not_work_is_not_ready(server: Serving) -> None:
    server.service.min_free_bytes = 1 << 62
    response = server.client.get("/readyz")
    assert refusal(response) == (503, "service-not-ready")
    assert "disk: full" in response.json()["detail"]
    checks = response.json()["checks"]
    assert (checks["disk"], checks["database"], checks["server"]) == ("full", "ok", "ok")
    assert response.headers["Retry-After"]


def test_checks_that_jobs_do_not_need_are_only_reported(server: Serving, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(WorkerPool, "is_alive", property(lambda pool: True))
    server.service.checks["extra"] = Check(lambda: "slow", is_needed=False)
    response = server.client.get("/readyz")
    assert response.status_code == 200
    assert response.json()["sandbox"] == sandbox.parts()
    assert response.json()["checks"]["extra"] == "slow"
    server.service.checks["extra"] = Check(lambda: "slow")
    assert refusal(server.client.get("/readyz")) == (503, "service-not-ready")


def test_an_unavailable_database_is_reported(server: Serving, monkeypatch: pytest.MonkeyPatch) -> None:
    def away(*arguments: Any) -> Any:
        raise error("database-away", "the database can't be used")

    monkeypatch.setattr(server.service.store, "get", away)
    monkeypatch.setattr(server.service.database, "check", away)
    response = server.client.get(f"/v1/jobs/{'0' * 32}")
    assert refusal(response) == (503, "database-away")
    assert response.headers["Retry-After"]
    assert "database: database-away" in server.client.get("/readyz").json()["detail"]


@pytest.mark.parametrize(
    ("url", "details"), [("postgresql://me@127.0.0.1:1/x", ("127.0.0.1",)), ("sqlite:////none/x", ("unable",))]
)
def test_what_a_database_says_is_for_the_log_alone(
    server: Serving, monkeypatch: pytest.MonkeyPatch, log: io.StringIO, url: str, details: tuple[str, ...]
) -> None:
    if url.startswith("postgresql"):
        pytest.importorskip("psycopg")
    monkeypatch.setattr(server.service.database, "engine", Database(url).engine)
    monkeypatch.setattr(server.service.database, "_is_sqlite", url.startswith("sqlite"))
    for response in (server.client.get("/v1/jobs"), server.submit(), server.client.get(f"/v1/jobs/{'0' * 32}")):
        assert refusal(response) == (503, "database-away")
        check_incident(response, log, details)


def test_what_the_system_says_is_for_the_log_alone(server: Serving, log: io.StringIO) -> None:
    server.service.folders.incoming.rmdir()
    response = server.submit()
    assert refusal(response) == (503, "storage-failed")
    check_incident(response, log, ("No such file",))


def check_incident(response: Any, log: io.StringIO, details: tuple[str, ...]) -> None:
    """Checks that a response has nothing of the details but the number under which the log has them."""
    found = re.search(r"\(incident ([0-9a-f]{8})\)", response.json()["detail"])
    assert found is not None, response.text
    logged = log.getvalue().partition(f"incident {found[1]}: ")[2]
    for text in details:
        assert text in logged
        assert text not in response.text


def test_a_stopping_server_takes_no_jobs(server: Serving) -> None:
    job = server.submitted()
    server.service.is_stopping = True
    assert refusal(server.submit()) == (503, "service-stopping")
    assert refusal(server.client.post(f"/v1/jobs/{job}/retry")) == (503, "service-stopping")
    assert server.client.get(f"/v1/jobs/{job}").status_code == 200
    assert refusal(server.client.get("/readyz")) == (503, "service-not-ready")
    assert "event: end" not in server.client.get(f"/v1/jobs/{job}/events").text


def test_internal_errors_are_not_shown_to_strangers(server: Serving, monkeypatch: pytest.MonkeyPatch) -> None:
    def wrong(*arguments: Any) -> Any:
        raise ZeroDivisionError("secret")

    monkeypatch.setattr(server.service.store, "get", wrong)
    response = server.client.get(f"/v1/jobs/{'0' * 32}")
    assert refusal(response) == (500, "internal-error")
    assert "secret" not in response.text


def test_metrics(server: Serving) -> None:
    server.submitted()
    server.client.get("/nowhere/at/all")
    text = server.client.get("/metrics").text
    assert 'tfconvert_jobs{state="queued"} 1.0' in text
    assert 'tfconvert_jobs_submitted_total{is_cached="false"} 1.0' in text
    assert 'tfconvert_requests_total{method="POST",route="/v1/jobs",status="202"} 1.0' in text
    assert 'tfconvert_requests_total{method="GET",route="other",status="404"} 1.0' in text
    assert "process_resident_memory_bytes" in text
    assert "nowhere" not in text


def test_ops(server: Serving) -> None:
    found = server.client.get("/v1/ops").json()
    assert len(found["ops"]) > 1000
    assert found["functions"]
    (conv,) = server.client.get("/v1/ops?pattern=Conv2D*").json()["ops"][:1]
    assert conv["op"] == "Conv2D"
    assert conv["how"] == "builtin"
    assert server.client.get("/v1/ops?pattern=NoSuchOp").json()["ops"] == []
    assert callable(supported_ops)


def test_the_interface_is_described(server: Serving) -> None:
    document = server.client.get("/openapi.json").json()
    operations = {
        (path, method): each for path, of_path in document["paths"].items() for method, each in of_path.items()
    }
    ids = [each["operationId"] for each in operations.values()]
    assert sorted(ids) == sorted(
        {
            "submit_job",
            "list_jobs",
            "get_job",
            "delete_job",
            "cancel_job",
            "retry_job",
            "follow_job",
            "get_result",
            "get_report",
            "get_report_page",
            "get_log",
            "list_tokens",
            "create_token",
            "revoke_token",
            "get_health",
            "get_part",
            "get_readiness",
            "get_metrics",
            "list_ops",
        }
    )
    for (path, _), each in operations.items():
        assert each["summary"]
        assert each["tags"]
        is_open = path in ("/healthz", "/readyz")
        assert is_open or each["security"], path
        assert is_open or {"401", "429"} <= each["responses"].keys()
        for status, told in each["responses"].items():
            assert told["description"]
            if int(status) >= 400 and status != "416":
                assert list(told["content"]) == ["application/problem+json"], (path, status)
    form = document["paths"]["/v1/jobs"]["post"]["requestBody"]["content"]["multipart/form-data"]
    assert form["schema"]["properties"].keys() == {"model", "place", "job", "options", "calibration"}
    assert "patterns" not in form["schema"]["properties"]["options"]["properties"]
    assert form["examples"]
    for name in ("JobView", "Problem", "NewToken"):
        assert document["components"]["schemas"][name]["examples"]
    _references_exist(document)


def _references_exist(document: Any) -> None:
    text = json.dumps(document)
    wanted = {part.split('"')[0] for part in text.split('"#/components/schemas/')[1:]}
    assert wanted <= document["components"]["schemas"].keys()


def test_missing_resources(server: Serving) -> None:
    assert refusal(server.client.get("/v2/jobs")) == (404, "not-found")
    assert refusal(server.client.get("/docs")) == (404, "not-found")
    assert refusal(server.client.get("/page/../config.py")) == (404, "not-found")
    assert refusal(server.client.get("/page/%2e%2e%2fconfig.py")) == (404, "not-found")
    response = server.client.request("PUT", "/v1/jobs")
    assert refusal(response) == (405, "method-not-allowed")
    assert response.headers["Allow"]


def test_the_page_is_served(server: Serving) -> None:
    page = server.client.get("/")
    assert page.headers["content-type"].startswith("text/html")
    assert "script-src 'self'" in page.headers["content-security-policy"]
    assert server.client.get("/page/service.js").headers["content-type"].startswith("text/javascript")
    frame = server.client.get("/page/frame.html").headers
    assert "sandbox" in frame["content-security-policy"]
    assert frame["x-frame-options"] == "SAMEORIGIN"
    assert "<h2 id=bad-request>" in server.client.get("/errors").text
