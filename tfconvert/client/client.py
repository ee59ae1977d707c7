"""The client that waits for each answer."""

from __future__ import annotations

import os
from collections.abc import Iterator
from types import TracebackType
from typing import TYPE_CHECKING, Any, BinaryIO

from tfconvert.client.effects import Steps, T
from tfconvert.client.job_info import JobInfo
from tfconvert.client.steps import Model, OnStage, Patience, Server, no_stage

if TYPE_CHECKING:
    import httpx


class Client:
    """Converts models on a server.

        with tfconvert.Client("http://localhost:8750") as client:
            client.convert("saved_model", quantize="dynamic").save("model.tflite")

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
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        from tfconvert.client.transports import BlockingTransport

        token = os.environ.get("TFCONVERT_TOKEN", "") if token is None else token
        self._transport = BlockingTransport(url, token, transport)
        self._server = Server(url, patience)

    def convert(self, model: Model = None, *, place: str = "", on_stage: OnStage = no_stage, **settings: Any) -> Job:
        """Converts a model, and returns the job once it has succeeded.

        Args:
            model: A SavedModel folder or a file, which is sent.
            place: Instead of that: a path or URL that the server may read.
            on_stage: Called with the name of each stage.
            **settings: Keywords of `tfconvert.convert`.

        Raises:
            ConversionError: As `tfconvert.convert` raises it, or the server refuses or can't be reached.
        """
        return self.submit(model, place=place, **settings).wait(on_stage)

    def submit(self, model: Model = None, *, place: str = "", key: str = "", **settings: Any) -> Job:
        """Submits a model, and returns the job, which has yet to run.

        Args:
            model: As for `convert`.
            place: Likewise.
            key: By which the server recognizes the request when it is sent again; random by default.
            **settings: Keywords of `tfconvert.convert`.

        Raises:
            ConversionError: The server refuses it or can't be reached, or the model can't be read.
        """
        return Job(self, self._run(self._server.submit(model, place, settings, key)))

    def job(self, id: str) -> Job:
        """Returns a job by its ID.

        Raises:
            ConversionError: There is none (`job-not-found`).
        """
        return Job(self, self._run(self._server.job(id)))

    def jobs(self, *, state: str = "", name: str = "", page: int = 50) -> Iterator[Job]:
        """Yields jobs, the newest first.

        Args:
            state: The state that they have; any by default.
            name: What their models' names hold.
            page: How many are asked for at once.
        """
        cursor = ""
        while True:
            found, cursor = self._run(self._server.page(state, name, cursor, page))
            yield from (Job(self, each) for each in found)
            if not cursor:
                return

    def ops(self) -> list[dict[str, Any]]:
        """Returns the table of ops that the server converts."""
        return self._run(self._server.ops())

    def health(self) -> dict[str, Any]:
        """Returns what the server says of itself.

        Raises:
            ConversionError: It can't be reached.
        """
        return self._run(self._server.get("healthz"))

    def close(self) -> None:
        """Closes the connections."""
        self._transport.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _run(self, steps: Steps[T]) -> T:
        return self._transport.run(steps)


class Job:
    """A conversion on a server.

    Attributes:
        info: Its state as the server last reported it.
    """

    def __init__(self, client: Client, info: JobInfo) -> None:
        self._client = client
        self.info = info

    @property
    def id(self) -> str:
        """Its ID."""
        return self.info.id

    def refresh(self) -> Job:
        """Asks the server how it is."""
        return self._become(self._server.job(self.id))

    def wait(self, on_stage: OnStage = no_stage) -> Job:
        """Waits until it has succeeded.

        Raises:
            ConversionError: It failed, for the reasons that the error has, or was cancelled (`job-cancelled`).
        """
        return self._become(self._server.wait(self.id, on_stage))

    def save(self, path: str | os.PathLike[str] | BinaryIO) -> None:
        """Writes the result, and what is beside it; each file appears whole or not at all.

        Args:
            path: Its path, whose ending must not be another target's; or a file that is open for binary writing, and in
                which one can go back.

        Raises:
            ConversionError: There is no result, or it can't be written (`output-not-writable`); or the ending is
                another target's, or there are files beside the result, which need a path (`wrong-option`).
        """
        self._run(self._server.save(self.info, path))

    def result(self) -> bytes:
        """Returns the result.

        Raises:
            ConversionError: There is none, or there are files beside it (`wrong-option`).
        """
        return self._run(self._server.result(self.info))

    def report(self) -> dict[str, Any]:
        """Returns the report of the conversion as data."""
        return self._run(self._server.report(self.id))

    def report_page(self) -> str:
        """Returns the report as a page of HTML."""
        return self._run(self._server.text(self.id, "report.html"))

    def log(self) -> str:
        """Returns what the conversion printed."""
        return self._run(self._server.text(self.id, "log"))

    def cancel(self) -> Job:
        """Has it end."""
        return self._become(self._server.change(self.id, "cancel"))

    def retry(self) -> Job:
        """Has it tried again, after it failed or was cancelled."""
        return self._become(self._server.change(self.id, "retry"))

    def delete(self) -> None:
        """Deletes it, and its result."""
        self._run(self._server.delete(self.id))

    def __repr__(self) -> str:
        return f"<tfconvert job {self.id} of {self.info.model_name}: {self.info.state}>"

    @property
    def _server(self) -> Server:
        return self._client._server  # noqa: SLF001  # They are one thing in two classes.

    def _run(self, steps: Steps[T]) -> T:
        return self._client._run(steps)  # noqa: SLF001

    def _become(self, steps: Steps[JobInfo]) -> Job:
        self.info = self._run(steps)
        return self
