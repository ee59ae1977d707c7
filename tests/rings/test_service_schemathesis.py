"""Requests made up from the OpenAPI document, right and wrong ones: none is answered with a failure of the server."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.service.serving import Serving

hypothesis = pytest.importorskip("hypothesis")
schemathesis = pytest.importorskip("schemathesis")

# Requests made up for each operation.
_EACH = 25


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Serving:
    folder = tmp_path_factory.mktemp("service")
    return Serving(folder, per_minute=0, max_queued=50, max_upload=1 << 16, idle=2.0, roots=(str(folder / "models"),))


@pytest.fixture(scope="module")
def headers(server: Serving) -> dict[str, str]:
    return server.token("admin", "admin")


@pytest.fixture(scope="module")
def made(server: Serving, headers: dict[str, str]) -> str:
    """One job that has ended, so that requests find something."""
    job = server.submitted(headers=headers)
    server.end(job)
    return job


OPERATIONS = (
    "submit_job",
    "list_jobs",
    "get_job",
    "delete_job",
    "cancel_job",
    "retry_job",
    "follow_job",
    "get_result",
    "get_part",
    "get_report",
    "get_report_page",
    "get_log",
    "list_tokens",
    "create_token",
    "revoke_token",
    "get_health",
    "get_readiness",
    "get_metrics",
    "list_ops",
)


@pytest.mark.parametrize("operation", OPERATIONS)
def test_no_request_makes_the_server_fail(operation: str, server: Serving, headers: dict[str, str], made: str) -> None:
    schema = schemathesis.openapi.from_dict(server.app.openapi())
    (wanted,) = [each.ok() for each in schema.include(operation_id=operation).get_all_operations()]
    modes = [schemathesis.GenerationMode.POSITIVE, schemathesis.GenerationMode.NEGATIVE]
    strategy = hypothesis.strategies.one_of(*(wanted.as_strategy(generation_mode=mode) for mode in modes))
    settings = hypothesis.settings(
        max_examples=_EACH,
        deadline=None,
        database=None,
        derandomize=True,
        phases=[hypothesis.Phase.generate],
        suppress_health_check=list(hypothesis.HealthCheck),
    )
    statuses: set[int] = set()

    @settings  # type: ignore[untyped-decorator]
    @hypothesis.given(case=strategy, is_known=hypothesis.strategies.booleans())  # type: ignore[untyped-decorator]
    def check(case: Any, is_known: bool) -> None:
        if is_known and "id" in (case.path_parameters or {}):
            case.path_parameters["id"] = made
        sent = case.as_transport_kwargs(base_url="http://localhost:8750", headers=headers)
        response = _send(server, sent)
        if response is not None:
            statuses.add(response.status_code)
            # This server runs no jobs, and says so.
            assert response.status_code < 500 or operation == "get_readiness", (sent, response.text)
            if response.status_code >= 400 and response.status_code != 416:
                assert response.headers["content-type"] == "application/problem+json"
            documented = wanted.definition.raw["responses"]
            assert str(response.status_code) in documented or response.status_code == 405, (sent, response.text)

    check()
    assert statuses
    leftovers = server.leftovers()
    assert not leftovers


def _send(server: Serving, sent: dict[str, Any]) -> httpx.Response | None:
    sent.pop("cookies", None)
    if not isinstance(sent.get("data", {}), dict):
        sent["content"] = sent.pop("data")
    with contextlib.suppress(UnicodeEncodeError):
        return server.client.request(sent.pop("method"), sent.pop("url"), **sent)
    return None


def test_all_operations_are_tried(server: Serving) -> None:
    document = server.app.openapi()
    assert sorted(OPERATIONS) == sorted(
        each["operationId"] for path in document["paths"].values() for each in path.values()
    )


def test_nothing_was_written_elsewhere(server: Serving) -> None:
    folders = server.service.folders
    known = {
        "service.db",
        "service.db-wal",
        "service.db-shm",
        "installation",
        "incoming",
        "models",
        "jobs",
        "results",
        "events",
        "servers",
    }
    assert {path.name for path in Path(folders.data).iterdir()} <= known
