"""The client of the conversion service: written once, asynchronously, with a synchronous face."""

from __future__ import annotations

import functools
import io
import json
import os
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import ExitStack, aclosing
from types import TracebackType
from typing import TYPE_CHECKING, Any, BinaryIO, Concatenate, Generic, ParamSpec, TypeVar
from urllib.parse import quote

from tfconvert.client.packing import Packed, pack_model, pack_samples
from tfconvert.client.protocol import (
    JOBS,
    EventReader,
    JobInfo,
    LostError,
    Patience,
    parsed,
    refused,
    to_error,
    to_info,
)
from tfconvert.client.settings import to_request
from tfconvert.converter.targets.output_form import form_of
from tfconvert.exporters.output_file import check_single, is_c_source, places_of, whole_file
from tfconvert.schema.diagnostics import error

if TYPE_CHECKING:
    import httpx

    from tfconvert.client.connection import AsyncConnection

OnStage = Callable[[str], None]
Model = str | os.PathLike[str] | None
"""The model to upload; `None` if the server reads it from a place."""

A = TypeVar("A")
P = ParamSpec("P")
T = TypeVar("T")


def no_stage(stage: str) -> None:
    """Does nothing when a stage begins."""


class AsyncClient:
    """Converts models on a server, several at a time if need be.

        async with tfconvert.AsyncClient("http://localhost:8750") as client:
            job = await client.convert("saved_model", quantize="dynamic")
            await job.save("model.tflite")

    Args:
        url: The server's URL.
        token: The token; by default the environment variable `TFCONVERT_TOKEN`, if it is set.
        patience: How long to go on when the server is busy, or can't be reached.
        transport: Carries requests instead of the network; a transport of `httpx`.

    Raises:
        ConversionError: The URL is wrong (`wrong-option`), or httpx isn't installed (`service-missing`).
    """

    def __init__(
        self,
        url: str,
        token: str | None = None,
        *,
        patience: Patience = Patience(),  # noqa: B008  # It is a tuple.
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        from tfconvert.client.connection import AsyncConnection

        self._connection = AsyncConnection(url, _token(token), patience, transport)

    async def convert(
        self, /, model: Model = None, *, place: str = "", on_stage: OnStage = no_stage, **settings: Any
    ) -> AsyncJob:
        """Converts a model, and returns the job once it has succeeded.

        Args:
            model: A SavedModel directory or a file, which is uploaded.
            place: Instead of that: a path or URL that the server may read.
            on_stage: Called with the name of each stage.
            **settings: Keywords of `tfconvert.convert`.

        Raises:
            ConversionError: As `tfconvert.convert` raises it, or the server refuses or can't be reached.
        """
        job = await self.submit(model, place=place, **settings)
        return await job.wait(on_stage)

    async def submit(self, /, model: Model = None, *, place: str = "", key: str = "", **settings: Any) -> AsyncJob:
        """Submits a model, and returns the job, which has yet to run.

        Args:
            model: As for `convert`.
            place: As for `convert`.
            key: The idempotency key: a request that is sent again with the same key makes no second job. Random by
                default.
            **settings: Keywords of `tfconvert.convert`.

        Raises:
            ConversionError: The server refuses it or can't be reached, or the model can't be read.
        """
        if (model is None) == (not place):
            raise error("wrong-option", "name either a model to upload, or the place of one that the server can read")
        data, samples = to_request(settings)
        # A form's fields are files without a name: httpx would send a form without files in another encoding.
        form: dict[str, tuple[str | None, Any]] = {"options": (None, json.dumps(data, allow_nan=False))}
        if place:
            form["place"] = (None, place)
        with ExitStack() as stack:
            for field, packed in (
                ("model", pack_model(model) if model is not None else None),
                ("calibration", samples if isinstance(samples, Packed) else pack_samples(samples) if samples else None),
            ):
                if packed is not None:
                    form[field] = (packed.name, stack.enter_context(packed.stream))
            headers = {"Idempotency-Key": key or secrets.token_hex(16)}
            return AsyncJob(self, await self._job("POST", JOBS, headers=headers, files=form))

    async def job(self, id: str) -> AsyncJob:
        """Returns a job by its ID.

        Raises:
            ConversionError: The job doesn't exist (`job-not-found`).
        """
        return AsyncJob(self, await self._job("GET", _path(id)))

    async def jobs(self, *, state: str = "", name: str = "", page: int = 50) -> AsyncIterator[AsyncJob]:
        """Yields jobs, the newest first.

        Args:
            state: Only jobs in this state; any by default.
            name: Only jobs whose model's name contains this.
            page: How many are requested at once.
        """
        query = {"state": state, "name": name, "cursor": "", "limit": str(page)}
        while True:
            params = {key: value for key, value in query.items() if value}
            body = await self._connection.send("GET", JOBS, params=params)
            found = parsed(body)
            for each in map(to_info, found.get("jobs", [{}])):
                if each is None:
                    raise refused(f"GET {JOBS}", 200, body)
                yield AsyncJob(self, each)
            query["cursor"] = str(found.get("next") or "")
            if not query["cursor"]:
                return

    async def ops(self) -> list[dict[str, Any]]:
        """Returns the table of ops that the server converts."""
        return list(parsed(await self._connection.send("GET", "v1/ops")).get("ops", ()))

    async def health(self) -> dict[str, Any]:
        """Returns the server's status and version.

        Raises:
            ConversionError: It can't be reached.
        """
        return parsed(await self._connection.send("GET", "healthz"))

    async def close(self) -> None:
        """Closes the connections."""
        await self._connection.close()

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def _job(self, method: str, path: str, **options: Any) -> JobInfo:
        body = await self._connection.send(method, path, **options)
        job = to_info(parsed(body))
        if job is None:
            raise refused(f"{method} {path}", 200, body)
        return job


class AsyncJob:
    """A conversion on a server.

    Attributes:
        info: Its state as the server last reported it.
    """

    def __init__(self, client: AsyncClient, info: JobInfo) -> None:
        self._client = client
        self._connection: AsyncConnection = client._connection  # noqa: SLF001  # They are one thing in two classes.
        self.info = info

    @property
    def id(self) -> str:
        """Its ID."""
        return self.info.id

    async def refresh(self) -> AsyncJob:
        """Asks the server for its state."""
        return await self._update("GET")

    async def wait(self, on_stage: OnStage = no_stage) -> AsyncJob:
        """Waits until it has succeeded.

        Args:
            on_stage: Called with the name of each stage.

        Raises:
            ConversionError: It failed, with the reasons, or was cancelled (`job-cancelled`).
        """
        await self.refresh()
        if not self.info.has_ended:
            await self._follow(on_stage)
            await self.refresh()
        if self.info.state == "failed":
            raise to_error(self.info.problem or {}) or error(
                "server-refused", f"the job {self.id} failed; the server can't say why"
            )
        if self.info.state == "cancelled":
            raise error("job-cancelled", f"the job {self.id} was cancelled")
        return self

    async def save(self, path: str | os.PathLike[str] | BinaryIO) -> None:
        """Writes the result and the files beside it; each is written atomically.

        Args:
            path: Its path, whose extension must not be another target's; or a seekable file that is open for binary
                writing.

        Raises:
            ConversionError: There is no result, or it can't be written (`output-not-writable`); or the extension is
                another target's, or there are files beside the result, which need a path (`wrong-option`).
        """
        job = self.info if self.info.has_ended else await self._client._job("GET", _path(self.id))  # noqa: SLF001
        endings = [*job.summary.get("beside", ()), ""]
        if not isinstance(path, str | os.PathLike):
            check_single(endings)
            await self._download("", path)
            return
        form_of(path, form_of("", job.settings)._asdict())
        if is_c_source(path):
            hint = "save the model as .tflite, and make the array with tfconvert MODEL.tflite -o MODEL.cc"
            raise error("wrong-option", f"won't write {os.fspath(path)}: servers make no C arrays", hint=hint)
        for ending, place in zip(endings, places_of(path, endings), strict=True):
            with whole_file(place) as stream:
                await self._download(ending, stream)

    async def result(self) -> bytes:
        """Returns the result.

        Raises:
            ConversionError: The job has no result, or there are files beside it (`wrong-option`).
        """
        stream = io.BytesIO()
        await self.save(stream)
        return stream.getvalue()

    async def report(self) -> dict[str, Any]:
        """Returns the report of the conversion as data."""
        return parsed((await self._text("report")).encode())

    async def report_page(self) -> str:
        """Returns the report as a page of HTML."""
        return await self._text("report.html")

    async def log(self) -> str:
        """Returns the output of the conversion."""
        return await self._text("log")

    async def cancel(self) -> AsyncJob:
        """Cancels it."""
        return await self._update("POST", "cancel")

    async def retry(self) -> AsyncJob:
        """Retries it, after it failed or was cancelled."""
        return await self._update("POST", "retry")

    async def delete(self) -> None:
        """Deletes it, and its result."""
        await self._connection.send("DELETE", _path(self.id))

    def __repr__(self) -> str:
        return f"<tfconvert job {self.id} of {self.info.model_name}: {self.info.state}>"

    async def _update(self, method: str, part: str = "") -> AsyncJob:
        self.info = await self._client._job(method, _path(self.id, part))  # noqa: SLF001
        return self

    async def _text(self, part: str) -> str:
        return (await self._connection.send("GET", _path(self.id, part))).decode("utf-8", "replace")

    async def _download(self, ending: str, target: BinaryIO) -> None:
        """Writes a file of the result to a file; a download whose connection breaks is resumed."""
        path = _path(self.id, f"result/{ending.removeprefix('.')}" if ending else "result")
        retries = self._connection.retries()
        tag, done, furthest = "", 0, 0
        while True:
            headers = {"Range": f"bytes={done}-", "If-Range": tag} if done and tag else {}
            response = await self._connection.stream(path, retries, headers)
            if done and response.status_code != 206:
                target.seek(0)
                target.truncate()
                done = 0
            tag = response.headers.get("etag", "")
            try:
                async with aclosing(self._connection.chunks(response)) as chunks:
                    async for chunk in chunks:
                        target.write(chunk)
                        done += len(chunk)
                        if done > furthest:
                            furthest = done
                            retries.reset()
                return
            except LostError as problem:
                lost = problem
            await retries.after_loss(lost)

    async def _follow(self, on_stage: OnStage) -> None:
        """Follows the events until the job has ended; a stream that breaks is resumed."""
        retries = self._connection.retries()
        last = ""
        while True:
            headers = {"Accept": "text/event-stream", **({"Last-Event-ID": last} if last else {})}
            response = await self._connection.stream(_path(self.id, "events"), retries, headers)
            events = EventReader()
            lost = LostError("the events ended before the job did")
            try:
                async with aclosing(self._connection.chunks(response)) as chunks:
                    async for chunk in chunks:
                        for event in events.read(chunk):
                            if event.type == "end":
                                return
                            if event.id:
                                last = event.id
                                retries.reset()
                            if event.type == "stage":
                                on_stage(str(parsed(event.data.encode()).get("name", "")))
            except LostError as problem:
                lost = problem
            await retries.after_loss(lost)


class _BlockingClient(AsyncClient):
    """An asynchronous client whose coroutines never suspend, since its connection blocks."""

    def __init__(self, url: str, token: str | None, patience: Patience, transport: httpx.BaseTransport | None) -> None:
        from tfconvert.client.connection import BlockingConnection

        self._connection = BlockingConnection(url, _token(token), patience, transport)


def _run(waiting: Awaitable[T]) -> T:
    """Returns the result of a coroutine that never suspends; it needs no event loop, and may run inside of one."""
    try:
        next(waiting.__await__())
    except StopIteration as end:
        result: T = end.value
        return result
    raise AssertionError("a blocking connection has suspended")


class _Blocking(Generic[A]):
    """The synchronous face of an asynchronous object."""

    _wrapped: A


def _blocking(method: Callable[Concatenate[A, P], Awaitable[T]]) -> Callable[Concatenate[_Blocking[A], P], T]:
    """Returns the method of a synchronous face that runs an asynchronous method."""

    @functools.wraps(method)
    def call(self: _Blocking[A], /, *args: P.args, **kwargs: P.kwargs) -> T:
        return _run(method(self._wrapped, *args, **kwargs))

    return call


def _job(method: Callable[Concatenate[A, P], Awaitable[AsyncJob]]) -> Callable[Concatenate[_Blocking[A], P], Job]:
    """As `_blocking`, for a method that returns a job: a job's own methods return that job."""

    @functools.wraps(method)
    def call(self: _Blocking[A], /, *args: P.args, **kwargs: P.kwargs) -> Job:
        found = _run(method(self._wrapped, *args, **kwargs))
        return self if isinstance(self, Job) else Job(found)

    return call


class Client(_Blocking[AsyncClient]):
    """Converts models on a server; as `AsyncClient`, but each method blocks until it is done.

        with tfconvert.Client("http://localhost:8750") as client:
            client.convert("saved_model", quantize="dynamic").save("model.tflite")

    Args:
        url, token, patience: As for `AsyncClient`.
        transport: Carries requests instead of the network; a transport of `httpx` that blocks.
    """

    def __init__(
        self,
        url: str,
        token: str | None = None,
        *,
        patience: Patience = Patience(),  # noqa: B008  # It is a tuple.
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        self._wrapped = _BlockingClient(url, token, patience, transport)

    convert = _job(AsyncClient.convert)
    submit = _job(AsyncClient.submit)
    job = _job(AsyncClient.job)
    ops = _blocking(AsyncClient.ops)
    health = _blocking(AsyncClient.health)
    close = _blocking(AsyncClient.close)

    def jobs(self, *, state: str = "", name: str = "", page: int = 50) -> Iterator[Job]:
        """Yields jobs, the newest first; see `AsyncClient.jobs`."""
        found = self._wrapped.jobs(state=state, name=name, page=page)
        while (job := _run(anext(found, None))) is not None:
            yield Job(job)

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class Job(_Blocking[AsyncJob]):
    """A conversion on a server; as `AsyncJob`, but each method blocks until it is done."""

    def __init__(self, job: AsyncJob) -> None:
        self._wrapped = job

    @property
    def info(self) -> JobInfo:
        """Its state as the server last reported it."""
        return self._wrapped.info

    @property
    def id(self) -> str:
        """Its ID."""
        return self.info.id

    refresh = _job(AsyncJob.refresh)
    wait = _job(AsyncJob.wait)
    save = _blocking(AsyncJob.save)
    result = _blocking(AsyncJob.result)
    report = _blocking(AsyncJob.report)
    report_page = _blocking(AsyncJob.report_page)
    log = _blocking(AsyncJob.log)
    cancel = _job(AsyncJob.cancel)
    retry = _job(AsyncJob.retry)
    delete = _blocking(AsyncJob.delete)

    def __repr__(self) -> str:
        return repr(self._wrapped)


def _token(token: str | None) -> str:
    return os.environ.get("TFCONVERT_TOKEN", "") if token is None else token


def _path(id: str, part: str = "") -> str:
    """Returns the path of a job, or of a part of it."""
    own = f"{JOBS}/{quote(id, safe='')}"
    return f"{own}/{part}" if part else own
