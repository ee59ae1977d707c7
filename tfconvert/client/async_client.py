"""The client that lets others go on while it waits."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from types import TracebackType
from typing import TYPE_CHECKING, Any, BinaryIO

from tfconvert.client.effects import Steps, T
from tfconvert.client.job_info import JobInfo
from tfconvert.client.steps import Model, OnStage, Patience, Server, no_stage

if TYPE_CHECKING:
    import httpx


class AsyncClient:
    """Converts models on a server, several at a time if need be.

        async with tfconvert.AsyncClient("http://localhost:8750") as client:
            job = await client.convert("saved_model", quantize="dynamic")
            await job.save("model.tflite")

    Args:
        url: The server's URL.
        token: The token; by default what the environment variable `TFCONVERT_TOKEN` says, if anything.
        patience: How long to go on when the server is busy, or can't be reached.
        transport: What carries requests instead of the network, as `httpx` has it.

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
        from tfconvert.client.transports import AsyncTransport

        token = os.environ.get("TFCONVERT_TOKEN", "") if token is None else token
        self._transport = AsyncTransport(url, token, transport)
        self._server = Server(url, patience)

    async def convert(
        self, model: Model = None, *, place: str = "", on_stage: OnStage = no_stage, **settings: Any
    ) -> AsyncJob:
        """Converts a model, and returns the job once it has succeeded.

        Args:
            model: A SavedModel folder or a file, which is sent.
            place: Instead of that: a path or URL that the server may read.
            on_stage: Called with the name of each stage.
            **settings: Keywords of `tfconvert.convert`.

        Raises:
            ConversionError: As `tfconvert.convert` raises it, or the server refuses or can't be reached.
        """
        job = await self.submit(model, place=place, **settings)
        return await job.wait(on_stage)

    async def submit(self, model: Model = None, *, place: str = "", key: str = "", **settings: Any) -> AsyncJob:
        """Submits a model, and returns the job, which has yet to run.

        Args:
            model: As for `convert`.
            place: Likewise.
            key: By which the server recognizes the request when it is sent again; random by default.
            **settings: Keywords of `tfconvert.convert`.

        Raises:
            ConversionError: The server refuses it or can't be reached, or the model can't be read.
        """
        return AsyncJob(self, await self._run(self._server.submit(model, place, settings, key)))

    async def job(self, id: str) -> AsyncJob:
        """Returns a job by its ID.

        Raises:
            ConversionError: There is none (`job-not-found`).
        """
        return AsyncJob(self, await self._run(self._server.job(id)))

    async def jobs(self, *, state: str = "", name: str = "", page: int = 50) -> AsyncIterator[AsyncJob]:
        """Yields jobs, the newest first.

        Args:
            state: The state that they have; any by default.
            name: What their models' names hold.
            page: How many are asked for at once.
        """
        cursor = ""
        while True:
            found, cursor = await self._run(self._server.page(state, name, cursor, page))
            for each in found:
                yield AsyncJob(self, each)
            if not cursor:
                return

    async def ops(self) -> list[dict[str, Any]]:
        """Returns the table of ops that the server converts."""
        return await self._run(self._server.ops())

    async def health(self) -> dict[str, Any]:
        """Returns what the server says of itself.

        Raises:
            ConversionError: It can't be reached.
        """
        return await self._run(self._server.get("healthz"))

    async def close(self) -> None:
        """Closes the connections."""
        await self._transport.close()

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def _run(self, steps: Steps[T]) -> T:
        return await self._transport.run(steps)


class AsyncJob:
    """A conversion on a server.

    Attributes:
        info: Its state as the server last reported it.
    """

    def __init__(self, client: AsyncClient, info: JobInfo) -> None:
        self._client = client
        self.info = info

    @property
    def id(self) -> str:
        """Its ID."""
        return self.info.id

    async def refresh(self) -> AsyncJob:
        """Asks the server how it is."""
        return await self._become(self._server.job(self.id))

    async def wait(self, on_stage: OnStage = no_stage) -> AsyncJob:
        """Waits until it has succeeded.

        Raises:
            ConversionError: It failed, for the reasons that the error has, or was cancelled (`job-cancelled`).
        """
        return await self._become(self._server.wait(self.id, on_stage))

    async def save(self, path: str | os.PathLike[str] | BinaryIO) -> None:
        """Writes the result, and what is beside it; each file appears whole or not at all.

        Args:
            path: Its path, whose ending must not be another target's; or a file that is open for binary writing, and in
                which one can go back.

        Raises:
            ConversionError: There is no result, or it can't be written (`output-not-writable`); or the ending is
                another target's, or there are files beside the result, which need a path (`wrong-option`).
        """
        await self._run(self._server.save(self.info, path))

    async def result(self) -> bytes:
        """Returns the result.

        Raises:
            ConversionError: There is none, or there are files beside it (`wrong-option`).
        """
        return await self._run(self._server.result(self.info))

    async def report(self) -> dict[str, Any]:
        """Returns the report of the conversion as data."""
        return await self._run(self._server.report(self.id))

    async def report_page(self) -> str:
        """Returns the report as a page of HTML."""
        return await self._run(self._server.text(self.id, "report.html"))

    async def log(self) -> str:
        """Returns what the conversion printed."""
        return await self._run(self._server.text(self.id, "log"))

    async def cancel(self) -> AsyncJob:
        """Has it end."""
        return await self._become(self._server.change(self.id, "cancel"))

    async def retry(self) -> AsyncJob:
        """Has it tried again, after it failed or was cancelled."""
        return await self._become(self._server.change(self.id, "retry"))

    async def delete(self) -> None:
        """Deletes it, and its result."""
        await self._run(self._server.delete(self.id))

    def __repr__(self) -> str:
        return f"<tfconvert job {self.id} of {self.info.model_name}: {self.info.state}>"

    @property
    def _server(self) -> Server:
        return self._client._server  # noqa: SLF001  # They are one thing in two classes.

    async def _run(self, steps: Steps[T]) -> T:
        return await self._client._run(steps)  # noqa: SLF001

    async def _become(self, steps: Steps[JobInfo]) -> AsyncJob:
        self.info = await self._run(steps)
        return self
