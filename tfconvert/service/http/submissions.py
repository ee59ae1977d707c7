"""Turns the form of a conversion request into files on disk and a `Submission`.

Its settings are JSON that the database and every process can represent.
"""

from __future__ import annotations

import asyncio
import json
import math
import posixpath
from collections.abc import Mapping
from contextlib import ExitStack
from typing import Any, NoReturn
from urllib.parse import urlsplit

from fastapi import Request
from fastapi.concurrency import run_in_threadpool

from tfconvert.schema.diagnostics import ConversionError, error
from tfconvert.service.http.access import Caller, slot
from tfconvert.service.http.form import Form, FormReader
from tfconvert.service.http.middleware import announced_size
from tfconvert.service.http.service import Service
from tfconvert.service.jobs import JobRecord, Submission
from tfconvert.service.model_kinds import recognize
from tfconvert.service.model_places import check as check_place
from tfconvert.service.storage import Incoming, Upload
from tfconvert.settings.data import SETTINGS, check_data, quantize_of
from tfconvert.settings.quantization import Quantize

_DEEPEST = 32
_LARGEST = 1 << 63


def read_settings(text: str) -> dict[str, Any]:
    """Returns settings.

    Args:
        text: A JSON object, or an empty string for no settings.

    Raises:
        ConversionError: It is not JSON, or no settings, or names files (`bad-config`).
    """
    try:
        settings = json.loads(text or "{}", parse_constant=_refuse)
    except (ValueError, RecursionError) as problem:
        reason = "it is nested too deeply" if isinstance(problem, RecursionError) else problem
        raise error("bad-config", f"'options' is not JSON: {reason}") from None
    if not isinstance(settings, dict):
        raise error("bad-config", "'options' is not an object", hint='as in {"quantize": "dynamic"}')
    _check_values(settings)
    check_data(settings, "options", allow_paths=False)
    return settings


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not a number")


def _check_values(settings: dict[str, Any]) -> None:
    """Rejects values that JSON can represent but databases can't."""
    pending: list[tuple[Any, int]] = [(settings, 0)]
    while pending:
        value, depth = pending.pop()
        if depth > _DEEPEST:
            raise error("bad-config", "'options' is nested too deeply")
        if isinstance(value, dict):
            pending += [(each, depth + 1) for pair in value.items() for each in pair]
        elif isinstance(value, list):
            pending += [(each, depth + 1) for each in value]
        elif isinstance(value, str):
            _check_text(value)
        elif (isinstance(value, float) and not math.isfinite(value)) or (
            isinstance(value, int) and not -_LARGEST <= value < _LARGEST
        ):
            raise error("bad-config", "'options' has a number that is too large")


def _check_text(text: str) -> None:
    if "\0" in text or any("\ud800" <= each <= "\udfff" for each in text):
        raise error("bad-config", "'options' has a string with an invalid character")


FORM: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "content": {
            "multipart/form-data": {
                "schema": {
                    "type": "object",
                    "additionalProperties": False,
                    "oneOf": [{"required": ["model"]}, {"required": ["place"]}, {"required": ["job"]}],
                    "properties": {
                        "model": {
                            "type": "string",
                            "format": "binary",
                            "description": "A SavedModel's directory as .zip, .tar or .tar.gz, or a GraphDef.",
                        },
                        "place": {
                            "type": "string",
                            "maxLength": 4096,
                            "description": "Instead of a file: a path or URL that the server may read.",
                        },
                        "job": {
                            "type": "string",
                            "pattern": "^[0-9a-f]{32}$",
                            "description": "Instead of a file: the ID of a job whose model, and samples if none are "
                            "sent, are used again.",
                        },
                        "options": {
                            "type": "object",
                            "additionalProperties": False,
                            "description": "Keywords of tfconvert.convert, as JSON.",
                            "properties": {
                                name: each.client_schema
                                for name, each in SETTINGS.items()
                                if each.own_values or not each.is_path
                            },
                        },
                        "calibration": {
                            "type": "string",
                            "format": "binary",
                            "description": "Samples to quantize with: .npz, or an archive of .npy files. The modes "
                            "int8 and int16 need them unless options.quantize.trained is set.",
                        },
                    },
                },
                "encoding": {"options": {"contentType": "application/json"}},
                "examples": {
                    "upload": {"summary": "A file", "value": {"model": "(bytes)", "options": {"quantize": "dynamic"}}},
                    "place": {"summary": "A place", "value": {"place": "s3://models/saved_model"}},
                },
            }
        },
    }
}
"""The OpenAPI description of the body."""


async def receive(request: Request, service: Service, caller: Caller, key: str) -> Submission:
    """Returns the submission of a request, and stores its files.

    Args:
        request: The request, before its body is read.
        service: The server.
        caller: The client.
        key: The idempotency key, or empty.
    """
    service.check_open()
    announced = announced_size(request.headers)
    await run_in_threadpool(_check_size, service, caller, announced)
    with slot(service.uploads, caller, "uploads"), ExitStack() as stack:
        most = service.config.max_upload

        def new_file(field: str) -> Incoming:
            return Incoming(service.folders, most, field)

        reader = FormReader(request.headers.get("content-type", ""), new_file, stack)
        form = await reader.read(request.stream())
        settings = read_settings(form.texts.get("options", ""))
        place = form.texts.get("place", "")
        _check(form, place, service)
        former = await _former(form, service, caller)
        quantize = quantize_of(settings)
        samples = _check_samples(quantize, has_samples="calibration" in form.files, former=former)
        if not announced:
            size = sum(file.incoming.size for file in form.files.values())
            await run_in_threadpool(_check_size, service, caller, size)
        kept = {field: await asyncio.to_thread(file.incoming.keep) for field, file in form.files.items()}
    name = form.files["model"].name if "model" in form.files else _last(place)
    if "model" in kept:
        path = service.folders.model(kept["model"].sha256)
        await asyncio.to_thread(recognize, path, name, takes_keras=service.config.takes_keras)
    submission = Submission(
        caller.owner,
        settings,
        name,
        _digest(kept, "model"),
        _digest(kept, "calibration") or samples,
        place,
        sum(each.size for each in kept.values()),
        key,
    )
    return submission if former is None else _again(submission, former)


def _check_size(service: Service, caller: Caller, size: int) -> None:
    """Checks that there is room for an upload: on the disk, and in the quota of its owner."""
    service.check_room(size)
    service.store.check_size(caller.owner, size)


async def _former(form: Form, service: Service, caller: Caller) -> JobRecord | None:
    """Returns the job whose model is to be converted again."""
    if "job" not in form.texts:
        return None
    return await run_in_threadpool(service.store.get, form.texts["job"], caller.sees)


def _again(submission: Submission, former: JobRecord) -> Submission:
    """Returns a submission with the model of a job."""
    return submission._replace(model_name=former.model_name, model_sha256=former.model_sha256, place=former.place)


def _check_samples(quantize: Quantize | None, former: JobRecord | None, *, has_samples: bool) -> str:
    """Returns the digest of the samples of a former job that are used again; empty for none.

    Args:
        quantize: How to quantize.
        former: The job whose model is to be converted again.
        has_samples: Whether the request has samples of its own.

    Raises:
        ConversionError: The request lacks samples (`no-samples`), or has some that would not be used (`bad-request`).
    """
    takes_samples = quantize is not None and quantize.takes_samples
    if has_samples and not takes_samples:
        raise _bad_request(
            "'calibration' is for the modes int8 and int16, and for models that were not trained for quantization",
            'as in options={"quantize": "int8"}',
        )
    samples = former.calibration_sha256 if former is not None and takes_samples and not has_samples else ""
    if quantize is not None and quantize.lacks_samples and not has_samples and not samples:
        raise error(
            "no-samples",
            f"'calibration' is missing: the mode {quantize.mode!r} needs samples to find the ranges of values",
            hint="send a file of typical inputs as the field 'calibration'; or, if the model was trained with fake "
            f'quantization, say so: options={{"quantize": {{"mode": "{quantize.mode}", "trained": true}}}}',
        )
    return samples


def _check(form: Form, place: str, service: Service) -> None:
    if sum(("model" in form.files, bool(place), "job" in form.texts)) != 1:
        raise _bad_request("one of 'model', 'place' and 'job' must be there", "send a file as 'model'")
    if "model" in form.files and not form.files["model"].incoming.size:
        raise _bad_request("'model' is empty", "with curl: -F model=@saved_model.tar.gz")
    if place:
        if any(not each.isprintable() for each in place):
            raise _bad_request("'place' has a character that isn't seen")
        check_place(place, service.config.roots)


def _bad_request(message: str, hint: str = "") -> ConversionError:
    return error("bad-request", message, hint=hint)


def _digest(kept: Mapping[str, Upload], field: str) -> str:
    return kept[field].sha256 if field in kept else ""


def _last(place: str) -> str:
    """Returns the last part of a path or URL."""
    return posixpath.basename(urlsplit(place).path.rstrip("/")) or "model"
