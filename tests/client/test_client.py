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
from tests.batch.models import RELU
from tests.support import running_service
from tests.support.flat_settings import converted
from tests.support.litert import RunTFLite
from tests.support.running_service import RunningService
from tfconvert.client import AsyncClient, Client
from tfconvert.converter.process import sandbox

running, server = running_service.running, running_service.server


@pytest.fixture
def client(server: RunningService) -> Iterator[Client]:
    with Client(server.url) as client:
        yield client


def _in_process(server: RunningService, token: str | None = None) -> AsyncClient:
    return AsyncClient("http://localhost", token, transport=httpx.ASGITransport(server.app))


def test_a_model_is_converted(client: Client, digits_model: Path, tmp_path: Path) -> None:
    stages: list[str] = []
    job = client.convert(digits_model, on_stage=stages.append)
    assert stages[:2] == ["unpack", "open"]
    assert stages[-1] == "write"
    assert job.info.state == "succeeded"
    assert job.info.model_name == "saved_model.tar"
    job.save(tmp_path / "model.tflite")
    assert (tmp_path / "model.tflite").read_bytes() == bytes(tfconvert.convert(digits_model)) == job.result()
    assert job.report()["operators"]["CONV_2D"] >= 1
    assert job.report_page().startswith("<!doctype html>")
    assert "legalize" in job.log()
    assert [each.name for each in tmp_path.iterdir()] == ["model.tflite"]


def test_the_fidelity_of_a_job_is_in_the_list(client: Client, outlier_model: Path) -> None:
    quantize = tfconvert.Quantize("int8", samples=str(outlier_model.with_name("images.npy")), equalize="off")
    job = client.convert(outlier_model, quantize=quantize, verify=tfconvert.Verify(compare_layers=True))
    (listed,) = [each for each in client.jobs() if each.id == job.id]
    assert listed.info.summary["fidelity"]["is_low"] is True
    assert len(job.report()["quantization"]["fidelity"]["exclusions"]["exclude"]) == 2
    with pytest.raises(tfconvert.ConversionError, match="the limits are 20 dB and 95%") as caught:
        client.convert(outlier_model, quantize=quantize, verify=tfconvert.Verify(min_snr=20, min_agreement=0.95))
    assert caught.value.code == "low-fidelity"


def test_jobs_are_listed_changed_and_deleted(client: Client, server: RunningService, digits_model: Path) -> None:
    server.hold()
    jobs = [client.submit(digits_model) for _ in range(5)]
    assert [job.id for job in client.jobs(page=2)] == [job.id for job in reversed(jobs)]
    assert jobs[0].cancel().info.state == "cancelled"
    with pytest.raises(tfconvert.ConversionError, match="was cancelled") as caught:
        jobs[0].wait()
    assert caught.value.code == "job-cancelled"
    assert [job.id for job in client.jobs(state="cancelled")] == [jobs[0].id]
    assert list(client.jobs(name="no such")) == []
    server.release()
    assert jobs[0].retry().wait().info.state == "succeeded"
    assert client.job(jobs[0].id).info == jobs[0].refresh().info
    assert repr(jobs[0]) == f"<tfconvert job {jobs[0].id} of saved_model.tar: succeeded>"
    assert "AddV2" in [each["op"] for each in client.ops()]
    assert client.health()["status"] == "ok"
    jobs[0].delete()
    with pytest.raises(tfconvert.ConversionError) as caught:
        client.job(jobs[0].id)
    assert caught.value.code == "job-not-found"


def test_the_server_s_reasons_are_those_of_a_conversion(client: Client, digits_model: Path, tmp_path: Path) -> None:
    with pytest.raises(tfconvert.ConversionError) as there:
        client.convert(digits_model, signatures="no such")
    with pytest.raises(tfconvert.ConversionError) as here:
        tfconvert.convert(digits_model, signatures="no such")
    assert there.value.diagnostics == here.value.diagnostics
    (tmp_path / "model.pb").write_bytes(b"nothing")
    with pytest.raises(tfconvert.ConversionError, match="neither a model nor an archive") as there:
        client.convert(tmp_path / "model.pb")
    assert there.value.code == "unknown-model"


def test_what_can_not_be_sent_is_refused_before_it_is(client: Client, server: RunningService, tmp_path: Path) -> None:
    for settings, code in (
        ({}, "model-not-found"),
        ({"patterns": ["mine.py"]}, "bad-config"),
        ({"verify_data": "inputs.npz"}, "bad-config"),
        ({"quantise": "int8"}, "bad-config"),
        ({"patterns": [object()]}, "wrong-option"),
        ({"place": "/models/m"}, "wrong-option"),
        ({"quantize": tfconvert.Quantize("int8", samples=[{"x": 1}])}, "wrong-option"),
        ({"quantize": tfconvert.Quantize("int8", samples=["gone.npz"])}, "model-not-found"),
        ({"quantize": {"mode": "int8", "samples": "gone.npz"}}, "model-not-found"),
        ({"quantize": "INT8", "samples": "gone.npz"}, "model-not-found"),
        ({"quantize": "DYNAMIC"}, "model-not-found"),
        ({"quantize": "int8"}, "no-samples"),
        ({"quantize": tfconvert.Quantize("int16")}, "no-samples"),
        ({"quantize": tfconvert.Quantize("int8", trained=True)}, "model-not-found"),
        ({"samples": "gone.npz"}, "wrong-option"),
        ({"metadata": {"outputs": {"y": {"labels": "gone.txt"}}}}, "unreadable-file"),
        ({"metadata": {"outputs": {"y": {"name": {1}}}}}, "wrong-option"),
        ({"metadata": "labels.txt"}, "wrong-option"),
        ({"metadata": {"tokenizer": {"type": "bert", "vocabulary": "gone.txt"}}}, "unreadable-file"),
        ({"metadata": {"tokenizer": {"type": "sentencepiece", "model": "p.model"}}}, "bad-config"),
    ):
        with pytest.raises(tfconvert.ConversionError) as caught:
            client.submit(tmp_path / "missing", **settings)
        assert caught.value.code == code, settings
    with pytest.raises(tfconvert.ConversionError) as caught:
        client.submit()
    assert caught.value.code == "wrong-option"
    assert server.jobs == []


def test_settings_and_samples_arrive(
    server: RunningService, tmp_path: Path, digits_model: Path, run_tflite: RunTFLite
) -> None:
    draw = np.random.default_rng(0)
    np.savez(tmp_path / "samples.npz", pixels=draw.random((8, 8, 8, 1), np.float32))
    (tmp_path / "labels.txt").write_text("\n".join("abcdefghij"))
    settings: dict[str, Any] = {
        "quantize": tfconvert.Quantize("int8", io="int8"),
        "samples": str(tmp_path / "samples.npz"),
        "metadata": {"outputs": {"output_0": {"labels": tmp_path / "labels.txt"}}},
        "limits": tfconvert.Limits(constant_bytes=1 << 30),
        "batch": 1,
        "target_runtime": None,
    }
    with np.load(tmp_path / "samples.npz") as arrays:
        in_memory = [arrays["pixels"], dict(arrays)]

    async def convert(**settings: Any) -> tuple[bytes, dict[str, Any]]:
        async with _in_process(server) as client:
            job = await client.convert(digits_model, **settings)
            await job.save(tmp_path / "model.tflite")
            return await job.result(), job.info.settings["quantize"]

    content, quantize = asyncio.run(convert(**settings))
    for samples in in_memory:
        assert asyncio.run(convert(**settings | {"samples": samples}))[0] == content
    assert {name: quantize[name] for name in ("mode", "io")} == {"mode": "int8", "io": "int8"}
    assert content == (tmp_path / "model.tflite").read_bytes()
    # A list of labels is what arrives of a file of them.
    settings["metadata"] = {"outputs": {"output_0": {"labels": list("abcdefghij")}}}
    assert content == bytes(converted(digits_model, **settings))
    (scores,) = run_tflite(content, [np.zeros([1, 8, 8, 1], np.int8)])
    assert scores.dtype == np.int8


_TRAINED = """node { name: "x" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } }
  attr { key: "shape" value { shape { dim { size: 4 } } } } }
node { name: "ranged" op: "FakeQuantWithMinMaxArgs" input: "x"
  attr { key: "min" value { f: -1 } } attr { key: "max" value { f: 1 } } }
node { name: "positive" op: "Relu" input: "ranged" attr { key: "T" value { type: DT_FLOAT } } }
node { name: "y" op: "FakeQuantWithMinMaxArgs" input: "positive"
  attr { key: "min" value { f: 0 } } attr { key: "max" value { f: 1 } } }
"""


def test_a_model_that_was_trained_for_quantization_needs_no_samples(client: Client, tmp_path: Path) -> None:
    (tmp_path / "trained.pbtxt").write_text(_TRAINED)
    local = tfconvert.convert(tmp_path / "trained.pbtxt", quantize="int8")
    job = client.convert(tmp_path / "trained.pbtxt", quantize=tfconvert.Quantize("int8", trained=True))
    assert job.result() == bytes(local)
    (tmp_path / "plain.mlir").write_text(RELU)
    with pytest.raises(tfconvert.ConversionError, match="fake-quantizes nothing") as caught:
        client.convert(tmp_path / "plain.mlir", quantize=tfconvert.Quantize("int8", trained=True))
    assert caught.value.code == "no-samples"


@pytest.mark.skipif(not sandbox.is_available(), reason="this system has no Landlock of Linux 6.12")
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning")
def test_keras_files_are_read_in_a_sandbox(client: Client, tmp_path: Path, tf: Any) -> None:
    keras = tf.keras
    model = keras.Sequential([keras.Input((8,)), keras.layers.Dense(4, activation="relu")])
    model.save(tmp_path / "model.keras")
    model.save(tmp_path / "model.h5")
    hostile = keras.Sequential([keras.Input((8,)), keras.layers.Lambda(lambda x: x * x)])
    hostile.save(tmp_path / "hostile.keras")
    for name in ("model.keras", "model.h5"):
        job = client.submit(tmp_path / name)
        try:
            job.wait()
        except tfconvert.ConversionError:
            print("LOG", job.log())
            raise
        assert job.result()[4:8] == b"TFL3"
        assert job.report()["source"] == name
        assert "<html" in job.report_page()
    with pytest.raises(tfconvert.ConversionError, match="Lambda") as caught:
        client.convert(tmp_path / "hostile.keras")
    assert caught.value.code == "load-failed"


def test_several_at_a_time(server: RunningService, digits_model: Path) -> None:
    async def convert() -> list[str]:
        async with _in_process(server) as client:
            jobs = await asyncio.gather(*(client.convert(digits_model, batch=size) for size in (1, 2, 3)))
            assert [job.info.settings["batch"] for job in jobs] == [1, 2, 3]
            assert "AddV2" in [each["op"] for each in await client.ops()]
            assert (await client.health())["status"] == "ok"
            assert "CONV_2D" in (await jobs[0].report())["operators"]
            assert (await jobs[0].report_page()).startswith("<!doctype")
            assert "legalize" in await jobs[0].log()
            await jobs[0].delete()
            assert repr(await client.job(jobs[1].id)) == f"<tfconvert job {jobs[1].id} of saved_model.tar: succeeded>"
            with server.held():
                waiting = await client.submit(digits_model, batch=4)
                assert (await waiting.cancel()).info.state == "cancelled"
                assert (await waiting.retry()).info.state == "queued"
            await waiting.wait()
            assert (await jobs[1].wait()).info == (await jobs[1].refresh()).info
            return [job.id async for job in client.jobs(page=1)]

    assert len(asyncio.run(convert())) == 3


def test_who_has_no_token_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with RunningService(tmp_path / "server", workers=0, require_token=True) as server:

        async def ask(token: str | None) -> int:
            async with _in_process(server, token) as client:
                return len([job async for job in client.jobs()])

        with pytest.raises(tfconvert.ConversionError) as caught:
            asyncio.run(ask("wrong"))
        assert caught.value.code == "token-refused"
        monkeypatch.setenv("TFCONVERT_TOKEN", server.token())
        assert asyncio.run(ask(None)) == 0


@pytest.mark.parametrize("url", ["localhost:8750", "ftp://server", "http://", "http://server:port", ""])
def test_what_is_no_url_of_a_server_is_refused(url: str) -> None:
    with pytest.raises(tfconvert.ConversionError) as caught:
        Client(url)
    assert caught.value.code == "wrong-option"


def test_without_httpx_there_is_a_word(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "tfconvert.client.connection")
    monkeypatch.setitem(sys.modules, "httpx", None)
    with pytest.raises(tfconvert.ConversionError, match="pip install 'tfconvert\\[service\\]'") as caught:
        Client("http://localhost:8750")
    assert caught.value.code == "service-missing"
