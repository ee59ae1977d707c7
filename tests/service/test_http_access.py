"""Who may ask for what, and what browsers are told."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.service.serving import Serving, refusal
from tfconvert.service.http.service import RateLimiter


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Serving:
    return Serving(tmp_path_factory.mktemp("shared"), max_upload=100_000, idle=0.2, per_minute=0)


@pytest.fixture
def server(tmp_path: Path) -> Serving:
    return Serving(tmp_path / "data", require_token=True)


@pytest.fixture
def local(tmp_path: Path) -> Serving:
    return Serving(tmp_path / "data")


def test_requests_without_a_token_are_rejected(server: Serving) -> None:
    for method, path in (
        ("GET", "/v1/jobs"),
        ("POST", "/v1/jobs"),
        ("GET", "/v1/ops"),
        ("GET", "/metrics"),
        ("GET", f"/v1/jobs/{'0' * 32}"),
        ("GET", "/v1/tokens"),
    ):
        response = server.client.request(method, path)
        assert refusal(response) == (401, "token-needed")
        assert response.headers["WWW-Authenticate"].startswith("Bearer")
    for path in ("/healthz", "/", "/errors", "/openapi.json"):
        assert server.client.get(path).status_code == 200
    assert server.client.get("/readyz").status_code != 401


def test_invalid_tokens_are_rejected(server: Serving) -> None:
    good = server.token("ci")
    assert server.client.get("/v1/jobs", headers=good).status_code == 200
    token = good["Authorization"].partition(" ")[2]
    for wrong in (
        f"Basic {token}",
        "Bearer",
        "Bearer ",
        f"Bearer {token}x",
        f"Bearer {token[:-1]}",
        token,
        f"Bearer {token * 50}",
        "Bearer \xff\xfe",
        "Bearer ' OR 1=1 --",
    ):
        response = server.client.get("/v1/jobs", headers=[(b"Authorization", wrong.encode("latin-1"))])
        assert refusal(response) == (401, "token-refused"), wrong
    twice = [(b"Authorization", good["Authorization"].encode())] * 2
    assert refusal(server.client.get("/v1/jobs", headers=twice)) == (401, "token-refused")
    server.service.tokens.revoke("ci")
    assert refusal(server.client.get("/v1/jobs", headers=good)) == (401, "token-refused")


def test_jobs_are_their_owner_s(server: Serving) -> None:
    mine, other, admin = server.token("mine"), server.token("other"), server.token("admin", "admin")
    job = server.submitted(headers=mine)
    path = f"/v1/jobs/{job}"
    for method, part in (
        ("GET", ""),
        ("DELETE", ""),
        ("POST", "/cancel"),
        ("POST", "/retry"),
        ("GET", "/events"),
        ("GET", "/result"),
        ("GET", "/report"),
        ("GET", "/report.html"),
        ("GET", "/log"),
    ):
        assert refusal(server.client.request(method, path + part, headers=other)) == (404, "job-not-found")
    assert not server.client.get("/v1/jobs", headers=other).json()["jobs"]
    for headers in (mine, admin):
        assert server.client.get(path, headers=headers).json()["id"] == job
        assert [each["id"] for each in server.client.get("/v1/jobs", headers=headers).json()["jobs"]] == [job]
    assert server.client.post(f"{path}/cancel", headers=admin).json()["state"] == "cancelled"


def test_keys_of_owners_are_their_own(server: Serving) -> None:
    mine, other = server.token("mine"), server.token("other")
    key = {"Idempotency-Key": "1"}
    assert server.submitted(headers=mine | key) != server.submitted(headers=other | key)


def test_readers_only_look(server: Serving) -> None:
    reader = server.token("reader", "reader")
    assert server.client.get("/v1/jobs", headers=reader).status_code == 200
    assert refusal(server.submit(headers=reader)) == (403, "not-allowed")
    for method, part in (("DELETE", ""), ("POST", "/cancel"), ("POST", "/retry")):
        response = server.client.request(method, f"/v1/jobs/{'0' * 32}{part}", headers=reader)
        assert refusal(response) == (403, "not-allowed")
    assert not server.leftovers()


def test_administrators_keep_tokens(server: Serving) -> None:
    admin, user = server.token("admin", "admin"), server.token("user")
    assert refusal(server.client.get("/v1/tokens", headers=user)) == (403, "not-allowed")
    made = server.client.post("/v1/tokens", json={"name": "ci", "role": "reader", "per_minute": 9}, headers=admin)
    assert made.status_code == 201
    header = {"Authorization": f"Bearer {made.json()['token']}"}
    assert server.client.get("/v1/jobs", headers=header).status_code == 200
    listed = server.client.get("/v1/tokens", headers=admin).json()["tokens"]
    assert [(each["name"], each["role"], each["per_minute"]) for each in listed] == [
        ("admin", "admin", None),
        ("user", "user", None),
        ("ci", "reader", 9),
    ]
    assert not any("token" in each or "hash" in each for each in listed)
    assert refusal(server.client.post("/v1/tokens", json={"name": "ci"}, headers=admin))[0] in (400, 409)
    assert server.client.delete("/v1/tokens/ci", headers=admin).status_code == 204
    assert refusal(server.client.get("/v1/jobs", headers=header)) == (401, "token-refused")
    assert refusal(server.client.delete("/v1/tokens/nobody", headers=admin)) == (404, "token-not-found")
    wrong: Any
    for wrong in (
        {},
        {"name": ""},
        {"name": "a b"},
        {"name": "x", "role": "root"},
        {"name": "x", "max_active": 0},
        {"name": "x", "per_minute": 1 << 70},
        {"name": "x", "more": 1},
        [],
        "x",
        None,
    ):
        assert refusal(server.client.post("/v1/tokens", json=wrong, headers=admin)) == (422, "bad-request"), wrong


def test_tokens_have_limits_of_their_own(server: Serving) -> None:
    few = server.token("few", max_active=1, per_minute=4)
    server.submitted(headers=few)
    assert refusal(server.submit(options={"batch": 2}, headers=few)) == (429, "too-many-jobs")
    statuses = [server.client.get("/v1/jobs", headers=few).status_code for _ in range(3)]
    assert statuses == [200, 200, 429]
    response = server.client.get("/v1/jobs", headers=few)
    assert refusal(response) == (429, "too-many-requests")
    assert 0 < int(response.headers["Retry-After"]) <= 15
    assert server.client.get("/v1/jobs", headers=server.token("other")).status_code == 200


def test_measurements_are_for_administrators(server: Serving, local: Serving) -> None:
    for role, status in (("reader", 403), ("user", 403), ("admin", 200)):
        assert server.client.get("/metrics", headers=server.token(role, role)).status_code == status
    assert local.client.get("/metrics").status_code == 200


def test_a_bucket_fills_with_time() -> None:
    now = [100.0]
    limiter = RateLimiter(lambda: now[0])
    assert [limiter.take("a", 60) for _ in range(60)] == [0.0] * 60
    assert limiter.take("a", 60) == pytest.approx(1.0)
    assert limiter.take("b", 60) == 0.0
    assert limiter.take("a", 0) == 0.0
    now[0] += 1.5
    assert limiter.take("a", 60) == 0.0
    assert limiter.take("a", 60) == pytest.approx(0.5)
    now[0] += 1e6
    assert [limiter.take("a", 2) for _ in range(3)] == [0.0, 0.0, pytest.approx(30.0)]


@pytest.mark.parametrize(
    "host", ["evil.example", "localhost.evil.example", "127.0.0.1.nip.io:8750", "", "[::1]x", "192.0.2.1"]
)
def test_names_that_are_bound_again_are_refused(shared: Serving, host: str) -> None:
    for path in ("/v1/jobs", "/", "/healthz"):
        assert refusal(shared.client.get(path, headers={"Host": host})) == (403, "foreign-request")


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1:1234", "[::1]:8750", "LOCALHOST:8750"])
def test_own_names_are_accepted(shared: Serving, host: str) -> None:
    assert shared.client.get("/v1/jobs", headers={"Host": host}).status_code == 200


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://localhost:1"},
        {"Origin": "https://localhost:8750"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
    ],
)
def test_pages_of_others_change_nothing(local: Serving, headers: dict[str, str]) -> None:
    assert refusal(local.submit(headers=headers)) == (403, "foreign-request")
    job = local.submitted(headers={"Origin": "http://localhost:8750", "Sec-Fetch-Site": "same-origin"})
    for method, part in (("DELETE", ""), ("POST", "/cancel")):
        response = local.client.request(method, f"/v1/jobs/{job}{part}", headers=headers)
        assert refusal(response) == (403, "foreign-request")
    assert "access-control-allow-origin" not in local.client.get("/v1/jobs", headers=headers).headers


def test_tokens_count_on_this_machine_too(local: Serving) -> None:
    job = local.submitted()
    user = local.token("user")
    assert refusal(local.client.get(f"/v1/jobs/{job}", headers=user)) == (404, "job-not-found")
    assert refusal(local.client.get("/v1/jobs", headers={"Authorization": "Bearer x"})) == (401, "token-refused")
    assert refusal(local.client.get("/v1/tokens")) == (403, "not-allowed")


@pytest.mark.parametrize(
    "path", ["/", "/v1/jobs", "/nowhere", "/errors", "/openapi.json", "/page/service.js", "/v1/jobs/x"]
)
def test_every_response_has_the_headers(shared: Serving, path: str) -> None:
    headers = shared.client.get(path).headers
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["Referrer-Policy"] == "no-referrer"
    assert headers["Cross-Origin-Resource-Policy"] == "same-origin"
    assert headers["Content-Security-Policy"].startswith("default-src 'none'")
    assert "frame-ancestors 'none'" in headers["Content-Security-Policy"]
    assert headers["Cache-Control"] == ("no-cache" if path in ("/", "/page/service.js") else "no-store")
