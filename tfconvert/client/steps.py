"""The conversations with the server, as generators of what to do.

`client` and `async_client` give each a name and a type, and nothing else: one waits, the other lets others go on.
"""

from __future__ import annotations

import io
import json
import os
import secrets
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from typing import Any, BinaryIO, NamedTuple
from urllib.parse import quote

from tfconvert.client.effects import Answer, Call, Chunk, Close, LostError, Part, Pause, Steps
from tfconvert.client.event_reader import EventReader
from tfconvert.client.files import whole_file
from tfconvert.client.job_info import JobInfo, to_info
from tfconvert.client.packing import pack_model, pack_samples
from tfconvert.client.problems import parsed, refused, seconds_to_wait, to_error, unreachable
from tfconvert.client.settings import to_request
from tfconvert.converter.targets.output_form import form_of
from tfconvert.exporters.output_file import check_single, is_c_source, places_of
from tfconvert.schema.diagnostics import error

_JOBS = "v1/jobs"
_BUSY = (429, 503)

OnStage = Callable[[str], None]
Model = str | os.PathLike[str] | None
"""The upload; `None` if the server reads the model from a place."""


class Patience(NamedTuple):
    """How long the client goes on.

    Attributes:
        attempts: How often a request is sent whose connection breaks.
        seconds: How long the client waits for a server that has enough to do.
        first: The seconds before the second attempt; they double with each one.
    """

    attempts: int = 5
    seconds: float = 300.0
    first: float = 0.5


def no_stage(stage: str) -> None:
    """Does nothing when a stage begins."""


class Asking:
    """Asks, and asks again: by the server's own word if it is busy, after a while if the connection broke.

    Args:
        url: The server, for messages.
        patience: For how long.
    """

    def __init__(self, url: str, patience: Patience) -> None:
        self._url = url
        self._patience = patience
        self._left = patience.attempts
        self._until = time.monotonic() + patience.seconds

    def ask(self, call: Call) -> Steps[Answer]:
        """Returns the answer.

        Raises:
            ConversionError: It isn't good, or there is none.
        """
        while True:
            try:
                answer = yield call
            except LostError as problem:
                yield from self.lost(problem)
                continue
            assert isinstance(answer, Answer)
            if answer.is_good:
                return answer
            if call.is_streamed:
                answer = answer._replace(body=(yield from _whole()))
            wait = seconds_to_wait(answer, 2.0)
            if answer.status not in _BUSY or time.monotonic() + wait > self._until:
                raise refused(call, answer)
            yield Pause(wait)

    def lost(self, problem: LostError) -> Steps[None]:
        """Waits before another attempt.

        Raises:
            ConversionError: There were enough (`server-unreachable`).
        """
        self._left -= 1
        if self._left <= 0:
            raise unreachable(self._url, str(problem)) from None
        yield Pause(self._patience.first * 2 ** (self._patience.attempts - self._left - 1))

    def went_on(self) -> None:
        """Notes that something came through: the next break is the first again."""
        self._left = self._patience.attempts


class Server:
    """The conversations with one server.

    Args:
        url: Its URL.
        patience: For how long to go on.
    """

    def __init__(self, url: str, patience: Patience) -> None:
        self.url = url
        self._patience = patience

    def get(self, path: str, query: Mapping[str, str] | None = None) -> Steps[dict[str, Any]]:
        """Returns an object that the server has as JSON."""
        answer = yield from self._ask(Call("GET", path, query or {}))
        return parsed(answer.body)

    def ops(self) -> Steps[list[dict[str, Any]]]:
        """Returns the table of ops that the server converts."""
        return list((yield from self.get("v1/ops")).get("ops", ()))

    def submit(self, model: Model, place: str, settings: Mapping[str, Any], key: str) -> Steps[JobInfo]:
        """Sends a model; the same key, when it is sent again, makes no second job."""
        if (model is None) == (not place):
            raise error("wrong-option", "name either a model to be sent, or the place of one that the server can read")
        data, samples = to_request(settings)
        fields = {"options": json.dumps(data), **({"place": place} if place else {})}
        with ExitStack() as stack:
            files = []
            for field, packed in (
                ("model", pack_model(model) if model is not None else None),
                ("calibration", pack_samples(samples) if samples else None),
            ):
                if packed is not None:
                    files.append(Part(field, packed.name, stack.enter_context(packed.stream)))  # type: ignore[arg-type]
            headers = {"Idempotency-Key": key or secrets.token_hex(16)}
            return (yield from self._job(Call("POST", _JOBS, headers=headers, fields=fields, files=tuple(files))))

    def job(self, id: str) -> Steps[JobInfo]:
        """Returns what there is to know of a job."""
        return (yield from self._job(Call("GET", _path(id))))

    def change(self, id: str, verb: str) -> Steps[JobInfo]:
        """Cancels a job, or has it tried again."""
        return (yield from self._job(Call("POST", _path(id, verb))))

    def delete(self, id: str) -> Steps[None]:
        """Deletes a job that has ended, and its result."""
        yield from self._ask(Call("DELETE", _path(id)))

    def page(self, state: str, name: str, cursor: str, limit: int) -> Steps[tuple[list[JobInfo], str]]:
        """Returns a page of jobs, and the cursor of the next one, empty if there is none."""
        query = {"state": state, "name": name, "cursor": cursor, "limit": str(limit)}
        call = Call("GET", _JOBS, {key: value for key, value in query.items() if value})
        answer = yield from self._ask(call)
        found = parsed(answer.body)
        jobs = [to_info(each) for each in found.get("jobs", ())]
        if "jobs" not in found or None in jobs:
            raise refused(call, answer)
        return [each for each in jobs if each is not None], str(found.get("next") or "")

    def text(self, id: str, part: str) -> Steps[str]:
        """Returns a part of a job as text."""
        answer = yield from self._ask(Call("GET", _path(id, part)))
        return answer.body.decode("utf-8", "replace")

    def report(self, id: str) -> Steps[dict[str, Any]]:
        """Returns the report on a job as data."""
        return parsed((yield from self.text(id, "report")).encode())

    def wait(self, id: str, on_stage: OnStage) -> Steps[JobInfo]:
        """Waits until a job has ended.

        Raises:
            ConversionError: It failed, for the reasons that the error has, or was cancelled (`job-cancelled`).
        """
        job = yield from self.job(id)
        if not job.has_ended:
            yield from self._follow(id, on_stage)
            job = yield from self.job(id)
        if job.state == "failed":
            raise to_error(job.problem or {}) or error(
                "server-refused", f"the job {id} failed; the server can't say why"
            )
        if job.state == "cancelled":
            raise error("job-cancelled", f"the job {id} was cancelled")
        return job

    def result(self, job: JobInfo) -> Steps[bytes]:
        """Returns the file that a job has made."""
        stream = io.BytesIO()
        yield from self.save(job, stream)
        return stream.getvalue()

    def save(self, job: JobInfo, path: str | os.PathLike[str] | BinaryIO) -> Steps[None]:
        """Writes the files that a job has made; to a path, each appears whole or not at all.

        Raises:
            ConversionError: The ending of the path is another target's, or there are several files for a stream
                (`wrong-option`).
        """
        if not job.has_ended:
            job = yield from self.job(job.id)
        endings = [*job.summary.get("beside", ()), ""]
        if isinstance(path, str | os.PathLike):
            form_of(path, form_of("", job.settings)._asdict())
            if is_c_source(path):
                hint = "save the model as .tflite, and make the array with tfconvert MODEL.tflite -o MODEL.cc"
                raise error("wrong-option", f"won't write {os.fspath(path)}: servers make no C arrays", hint=hint)
            for ending, place in zip(endings, places_of(path, endings), strict=True):
                with whole_file(place) as stream:
                    yield from self._download(job.id, ending, stream)
        else:
            check_single(endings)
            yield from self._download(job.id, "", path)

    def _download(self, id: str, ending: str, target: BinaryIO) -> Steps[None]:
        """Writes a file of a job's result to a file; where the connection breaks, it goes on from there."""
        part = f"result/{ending.removeprefix('.')}" if ending else "result"
        asking = Asking(self.url, self._patience)
        tag, done, most = "", 0, 0
        while True:
            headers = {"Range": f"bytes={done}-", "If-Range": tag} if done and tag else {}
            answer = yield from asking.ask(Call("GET", _path(id, part), headers=headers, is_streamed=True))
            if done and answer.status != 206:
                target.seek(0)
                target.truncate()
                done = 0
            tag = answer.headers.get("etag", "")
            try:
                while chunk := (yield Chunk()):
                    target.write(chunk)
                    done += len(chunk)
                    if done > most:
                        most = done
                        asking.went_on()
                return
            except LostError as problem:
                lost = problem
            yield from asking.lost(lost)

    def _follow(self, id: str, on_stage: OnStage) -> Steps[None]:
        """Hears of a job's stages until it has ended."""
        asking = Asking(self.url, self._patience)
        last = ""
        while True:
            headers = {"Accept": "text/event-stream", **({"Last-Event-ID": last} if last else {})}
            yield from asking.ask(Call("GET", _path(id, "events"), headers=headers, is_streamed=True))
            events = EventReader()
            try:
                while chunk := (yield Chunk()):
                    for event in events.read(chunk):
                        if event.type == "end":
                            yield Close()
                            return
                        if event.id:
                            last = event.id
                            asking.went_on()
                        if event.type == "stage":
                            on_stage(str(parsed(event.data.encode()).get("name", "")))
                lost = LostError("the events ended before the job did")
            except LostError as problem:
                lost = problem
            yield from asking.lost(lost)

    def _ask(self, call: Call) -> Steps[Answer]:
        return (yield from Asking(self.url, self._patience).ask(call))

    def _job(self, call: Call) -> Steps[JobInfo]:
        answer = yield from self._ask(call)
        job = to_info(parsed(answer.body))
        if job is None:
            raise refused(call, answer)
        return job


def _path(id: str, part: str = "") -> str:
    """Returns the path of a job, or of a part of it."""
    own = f"{_JOBS}/{quote(id, safe='')}"
    return f"{own}/{part}" if part else own


def _whole() -> Steps[bytes]:
    """Returns the body of an answer that is streamed."""
    found = b""
    try:
        while chunk := (yield Chunk()):
            found += chunk
    except LostError:
        return found
    return found
