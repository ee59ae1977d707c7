"""The client against a server that converts, over a socket and in process."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

import tfconvert
from tests.conftest import RunTFLite
from tests.service_stand_in import Server, StandIn
from tfconvert.client import AsyncClient, Client


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with Server(tmp_path_factory.mktemp("server")) as server:
        yield server


@pytest.fixture
def client(server: Server) -> Iterator[Client]:
    with Client(server.url) as client:
        yield client


def test_a_model_is_converted(client: Client, digits_model: Path, tmp_path: Path) -> None:
    stages: list[str] = []
    job = client.convert(digits_model, on_stage=stages.append)
    assert stages[0] == "open"
    assert stages[-1] == "write"
    assert job.info.state == "succeeded"
    assert job.info.model_name == "saved_model.tar"
    job.save(tmp_path / "model.tflite")
    assert (tmp_path / "model.tflite").read_bytes() == bytes(tfconvert.convert(digits_model)) == job.result()
    assert job.report()["operators"]["CONV_2D"] >= 1
    assert job.report_page().startswith("<!doctype html>")
    assert job.log() == "nothing to say\n"
    assert [each.name for each in tmp_path.iterdir()] == ["model.tflite"]


def test_jobs_are_listed_changed_and_deleted(client: Client, server: Server, digits_model: Path) -> None:
    server.state.jobs.clear()
    server.state.open.clear()
    jobs = [client.submit(digits_model) for _ in range(5)]
    assert [job.id for job in client.jobs(page=2)] == [job.id for job in reversed(jobs)]
    assert jobs[0].cancel().info.state == "cancelled"
    with pytest.raises(tfconvert.ConversionError, match="was cancelled") as caught:
        jobs[0].wait()
    assert caught.value.code == "job-cancelled"
    assert [job.id for job in client.jobs(state="cancelled")] == [jobs[0].id]
    assert list(client.jobs(name="no such")) == []
    server.state.open.set()
    assert jobs[0].retry().wait().info.state == "succeeded"
    assert client.job(jobs[0].id).info == jobs[0].refresh().info
    jobs[0].delete()
    with pytest.raises(tfconvert.ConversionError) as caught:
        client.job(jobs[0].id)
    assert caught.value.code == "job-not-found"
    assert caught.value.diagnostics[0].hint == "look again"


def test_the_server_s_reasons_are_those_of_a_conversion(client: Client, digits_model: Path, tmp_path: Path) -> None:
    with pytest.raises(tfconvert.ConversionError) as there:
        client.convert(digits_model, signatures="no such")
    with pytest.raises(tfconvert.ConversionError) as here:
        tfconvert.convert(digits_model, signatures="no such")
    assert there.value.diagnostics == here.value.diagnostics
    (tmp_path / "model.pb").write_bytes(b"nothing")
    with pytest.raises(tfconvert.ConversionError, match="not an archive") as there:
        client.convert(tmp_path / "model.pb")
    assert there.value.code == "bad-archive"


def test_what_can_not_be_sent_is_refused_before_it_is(client: Client, server: Server, tmp_path: Path) -> None:
    server.state.asked.clear()
    for settings, code in (({}, "model-not-found"), ({"patterns": ["mine.py"]}, "bad-config"),
                           ({"verify_data": "inputs.npz"}, "bad-config"), ({"quantise": "int8"}, "bad-config"),
                           ({"patterns": [object()]}, "wrong-option"), ({"place": "/models/m"}, "wrong-option"),
                           ({"quantize": tfconvert.Quantize("int8", samples=[{"x": 1}])}, "wrong-option"),
                           ({"quantize": tfconvert.Quantize("int8", samples=["gone.npz"])}, "model-not-found"),
                           ({"metadata": "labels.txt"}, "wrong-option")):  # fmt: skip
        with pytest.raises(tfconvert.ConversionError) as caught:
            client.submit(tmp_path / "missing", **settings)
        assert caught.value.code == code, settings
    with pytest.raises(tfconvert.ConversionError) as caught:
        client.submit()
    assert caught.value.code == "wrong-option"
    assert server.state.asked == []


def test_settings_and_samples_arrive(tmp_path: Path, digits_model: Path, run_tflite: RunTFLite) -> None:
    draw = np.random.default_rng(0)
    np.savez(tmp_path / "samples.npz", pixels=draw.random((8, 8, 8, 1), np.float32))
    (tmp_path / "labels.txt").write_text("\n".join("abcdefghij"))
    settings: dict[str, Any] = {
        "quantize": tfconvert.Quantize("int8", samples=str(tmp_path / "samples.npz"), io="int8"),
        "metadata": {"outputs": {"output_0": {"labels": tmp_path / "labels.txt"}}},
        "limits": tfconvert.Limits(constant_bytes=1 << 30), "batch": 1, "target_runtime": None,
    }  # fmt: skip
    state = StandIn(tmp_path / "server")

    async def convert() -> tuple[bytes, dict[str, Any]]:
        transport = httpx.ASGITransport(state.app)
        async with AsyncClient("http://service", transport=transport) as client:
            job = await client.convert(digits_model, **settings)
            await job.save(tmp_path / "model.tflite")
            return await job.result(), job.info.settings["quantize"]

    content, quantize = asyncio.run(convert())
    assert {name: quantize[name] for name in ("mode", "io")} == {"mode": "int8", "io": "int8"}
    assert content == (tmp_path / "model.tflite").read_bytes()
    # A list of labels is what arrives of a file of them.
    settings["metadata"] = {"outputs": {"output_0": {"labels": list("abcdefghij")}}}
    assert content == bytes(tfconvert.convert(digits_model, **settings))
    (scores,) = run_tflite(content, [np.zeros([1, 8, 8, 1], np.int8)])
    assert scores.dtype == np.int8


def test_several_at_a_time(tmp_path: Path, digits_model: Path) -> None:
    state = StandIn(tmp_path / "server", token="of the test")

    async def convert() -> list[str]:
        transport = httpx.ASGITransport(state.app)
        async with AsyncClient("http://service/", "of the test", transport=transport) as client:
            jobs = await asyncio.gather(*(client.convert(digits_model, batch=size) for size in (1, 2, 3)))
            assert [job.info.settings["batch"] for job in jobs] == [1, 2, 3]
            assert (await client.ops())[0]["op"] == "AddV2"
            assert await client.health() == {"status": "ok"}
            assert "CONV_2D" in (await jobs[0].report())["operators"]
            assert (await jobs[0].report_page()).startswith("<!doctype")
            assert await jobs[0].log()
            await jobs[0].delete()
            assert repr(await client.job(jobs[1].id)) == f"<tfconvert job {jobs[1].id} of saved_model.tar: succeeded>"
            assert (await (await jobs[1].cancel()).retry()).info.state != "cancelled"
            assert (await jobs[1].wait()).info == (await jobs[1].refresh()).info
            return [job.id async for job in client.jobs(page=1)]

    assert len(asyncio.run(convert())) == 2


def test_who_has_no_token_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    state = StandIn(tmp_path / "server", token="of the test")

    async def ask(token: str | None) -> int:
        async with AsyncClient("http://service", token, transport=httpx.ASGITransport(state.app)) as client:
            return len([job async for job in client.jobs()])

    with pytest.raises(tfconvert.ConversionError) as caught:
        asyncio.run(ask("wrong"))
    assert caught.value.code == "unauthorized"
    monkeypatch.setenv("TFCONVERT_TOKEN", "of the test")
    assert asyncio.run(ask(None)) == 0


@pytest.mark.parametrize("url", ["localhost:8750", "ftp://server", "http://", "http://server:port", ""])
def test_what_is_no_url_of_a_server_is_refused(url: str) -> None:
    with pytest.raises(tfconvert.ConversionError) as caught:
        Client(url)
    assert caught.value.code == "wrong-option"


def test_without_httpx_there_is_a_word(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "tfconvert.converter.client.transports")
    monkeypatch.setitem(sys.modules, "httpx", None)
    with pytest.raises(tfconvert.ConversionError, match="pip install 'tfconvert\\[service\\]'") as caught:
        Client("http://localhost:8750")
    assert caught.value.code == "service-missing"
