"""Clients of the service that send models, wait for what becomes of them, and look whether it is right."""

from __future__ import annotations

import asyncio
import hashlib
import io
import itertools
import resource
import tarfile
import time
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx

_SERIAL = b"serial number 0000000000"
_FINAL = ("succeeded", "failed", "cancelled")
_TIMEOUT = 300.0
_BOUNDARY = "a-boundary-that-no-model-has-7b1d"
_PIECE = 1 << 18


class Outcome:
    """The responses that clients received.

    Attributes:
        seconds: For how long.
        latencies: Seconds from sending a model to having its result.
        cached: Those of models that were sent before.
        statuses: How often each status other than success was answered.
        problems: What is wrong, in words.
        processor: Seconds of the processor that the clients themselves took.
    """

    def __init__(self) -> None:
        self.seconds = 0.0
        self.latencies: list[float] = []
        self.cached: list[float] = []
        self.statuses: Counter[int] = Counter()
        self.problems: list[str] = []
        self.processor = 0.0

    @property
    def is_good(self) -> bool:
        """Whether nothing was lost, doubled or wrong, and no error was answered but that there is too much to do."""
        return not self.problems and not set(self.statuses) - {429}

    def figures(self) -> dict[str, Any]:
        """Returns the figures as plain data."""
        return {
            "jobs": len(self.latencies),
            "cached_jobs": len(self.cached),
            "seconds": round(self.seconds, 1),
            "per_second": round(len(self.latencies) / self.seconds, 2),
            "latency": _percentiles(self.latencies),
            "latency_of_cached": _percentiles(self.cached),
            "statuses": dict(self.statuses),
            "problems": self.problems[:20],
            "seconds_of_clients": round(self.processor, 1),
        }


def _percentiles(values: list[float]) -> dict[str, float]:
    ordered = sorted(values)
    return {
        f"p{part}": round(ordered[min(len(ordered) * part // 100, len(ordered) - 1)], 3)
        for part in (50, 95, 99)
        if ordered
    }


class Load:
    """Clients that each send one model after the other.

    Args:
        url: The server.
        token: Its token, empty for none.
        model: The SavedModel.
        clients: How many there are.
        repeats: Every so many a model is sent again; 0 for never.
        options: The options of each job, as JSON.
    """

    def __init__(self, url: str, token: str, model: Path, clients: int, repeats: int, options: str) -> None:
        self._url = url
        self._headers = {"Authorization": f"Bearer {token}"} if token else {}
        self._clients = clients
        self._repeats = repeats
        self._body, self._place = _body(model, options)
        self._numbers = itertools.count(time.time_ns() % 1_000_000_000)
        self._digests: set[str] = set()

    async def run(self, seconds: float) -> Outcome:
        """Runs all clients for some time, and until what they have sent is done."""
        outcome = Outcome()
        accepted: list[str] = []
        begin, used = time.monotonic(), _processor()
        limits = httpx.Limits(max_connections=2 * self._clients, max_keepalive_connections=self._clients)
        async with httpx.AsyncClient(
            base_url=self._url, headers=self._headers, timeout=_TIMEOUT, limits=limits
        ) as http:
            async with asyncio.TaskGroup() as group:
                for _ in range(self._clients):
                    group.create_task(self._client(http, begin + seconds, outcome, accepted))
            outcome.seconds, outcome.processor = time.monotonic() - begin, _processor() - used
            await self._check(http, outcome, accepted)
        return outcome

    async def _client(self, http: httpx.AsyncClient, end: float, outcome: Outcome, accepted: list[str]) -> None:
        sent: list[int] = []
        while time.monotonic() < end:
            is_repeated = bool(sent and self._repeats and len(sent) % self._repeats == 0)
            number = sent[0] if is_repeated else next(self._numbers)
            sent.append(number)
            begin = time.monotonic()
            job = await self._submit(http, number, end, outcome)
            if job is None:
                continue
            accepted.append(job["id"])
            if job["state"] not in _FINAL:
                job = await self._followed(http, job["id"], outcome)
            if job.get("state") != "succeeded":
                outcome.problems.append(f"{job.get('id')}: {job.get('state')} {job.get('problem')}")
                continue
            result = await http.get(f"/v1/jobs/{job['id']}/result")
            if result.status_code != httpx.codes.OK:
                outcome.statuses[result.status_code] += 1
                continue
            self._digests.add(hashlib.sha256(result.content).hexdigest())
            (outcome.cached if job["is_cached"] else outcome.latencies).append(time.monotonic() - begin)

    async def _submit(
        self, http: httpx.AsyncClient, number: int, end: float, outcome: Outcome
    ) -> dict[str, Any] | None:
        """Returns an accepted job, `None` if there is no time left to send it again."""
        headers = {"Content-Type": f"multipart/form-data; boundary={_BOUNDARY}", "Content-Length": str(len(self._body))}
        while True:
            answer = await http.post("/v1/jobs", content=self._pieces(number), headers=headers)
            if answer.is_success:
                job: dict[str, Any] = answer.json()
                return job
            outcome.statuses[answer.status_code] += 1
            if answer.status_code != httpx.codes.TOO_MANY_REQUESTS or time.monotonic() > end:
                return None
            await asyncio.sleep(float(answer.headers.get("Retry-After", 1)))

    async def _pieces(self, number: int) -> AsyncIterator[bytes]:
        """Yields the request's body with a number of its own in the model."""
        serial = b"%s%010d" % (_SERIAL[:-10], number)
        place = self._place
        for part in (self._body[:place], serial, self._body[place + len(serial) :]):
            for at in range(0, len(part), _PIECE):
                yield bytes(part[at : at + _PIECE])

    async def _followed(self, http: httpx.AsyncClient, job: str, outcome: Outcome) -> dict[str, Any]:
        """Returns a job once its events have ended."""
        async with http.stream("GET", f"/v1/jobs/{job}/events") as answer:
            if not answer.is_success:
                outcome.statuses[answer.status_code] += 1
            async for line in answer.aiter_lines():
                if line.strip() == "event: end":
                    break
        found: dict[str, Any] = (await http.get(f"/v1/jobs/{job}")).json()
        return found

    async def _check(self, http: httpx.AsyncClient, outcome: Outcome, accepted: list[str]) -> None:
        """Looks whether all that was accepted is there once, and came to the same result."""
        if len(set(accepted)) != len(accepted):
            outcome.problems.append("two jobs have the same ID")
        if len(self._digests) > 1:
            outcome.problems.append(f"equal models have {len(self._digests)} different results")
        there: Counter[str] = Counter()
        cursor = ""
        while True:
            page = (await http.get("/v1/jobs", params={"limit": 100, **({"cursor": cursor} if cursor else {})})).json()
            there.update(job["id"] for job in page["jobs"] if job["state"] in _FINAL)
            cursor = page.get("next") or ""
            if not cursor:
                break
        lost = [job for job in accepted if not there[job]]
        doubled = [job for job, count in there.items() if count > 1]
        outcome.problems += [f"{job} is lost" for job in lost] + [f"{job} is there twice" for job in doubled]


def _processor() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def _body(model: Path, options: str) -> tuple[memoryview, int]:
    """Returns the body of a request, and where in it a number stands that tells models apart."""
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as archive:
        archive.add(model, "saved_model")
        entry = tarfile.TarInfo("saved_model/assets.extra/serial.txt")
        entry.size = len(_SERIAL)
        archive.addfile(entry, io.BytesIO(_SERIAL))
    head = (
        f'--{_BOUNDARY}\r\nContent-Disposition: form-data; name="options"\r\n\r\n{options}\r\n'
        f'--{_BOUNDARY}\r\nContent-Disposition: form-data; name="model"; filename="model.tar"\r\n'
        "Content-Type: application/octet-stream\r\n\r\n"
    )
    body = head.encode() + stream.getvalue() + f"\r\n--{_BOUNDARY}--\r\n".encode()
    return memoryview(body), body.rindex(_SERIAL)
