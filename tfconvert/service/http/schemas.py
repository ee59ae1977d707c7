"""The fields of requests and responses for the OpenAPI document."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, JsonValue

from tfconvert.service.jobs import JobRecord, JobState
from tfconvert.service.tokens import Role, TokenRecord

_ID = "5d41402abc4b2a76b9719d911017c592"
_SUMMARY: JsonValue = {"size": 3412, "operators": 12}
_FINDING: JsonValue = {
    "code": "unsupported-op",
    "message": "LiteRT has no such operator",
    "op": "tf.Nonsense",
    "node": "model/nonsense",
    "severity": "error",
}


class Finding(BaseModel):
    """One thing that went wrong."""

    model_config = ConfigDict(json_schema_extra={"examples": [_FINDING]})

    code: str = Field(description="Stable; /errors says what each one means.")
    message: str
    op: str = ""
    node: str = ""
    location: str = ""
    hint: str = Field("", description="What to do about it.")
    severity: str = "error"
    signature: str = Field("", description="Types of the op's operands and results, and its attributes.")
    layer: str = ""


class Findings(BaseModel):
    """Why a job failed."""

    errors: list[Finding]
    advice: list[str] = []


class Problem(BaseModel):
    """Problem details as RFC 9457 has them."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "type": "/errors#job-not-found",
                    "title": "There is no such job.",
                    "status": 404,
                    "detail": "there is no such job",
                    "instance": f"/v1/jobs/{_ID}",
                    "code": "job-not-found",
                    "diagnostics": [{"code": "job-not-found", "message": "there is no such job", "severity": "error"}],
                }
            ]
        }
    )

    type: str = Field(description="Where the code is explained.")
    title: str = Field(description="What the code means.")
    status: int
    detail: str = Field(description="What went wrong.")
    instance: str = Field(description="The path that was asked for.")
    code: str
    diagnostics: list[Finding] = Field(description="All that is known, causes first.")
    advice: list[str] = []
    checks: dict[str, str] = Field({}, description="With `service-not-ready`: all checks of `/readyz`.")


class JobView(BaseModel):
    """A job. Times are seconds since the epoch."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "id": _ID,
                    "state": "succeeded",
                    "model_name": "saved_model.tar.gz",
                    "place": "",
                    "settings": {"quantize": "dynamic"},
                    "has_samples": False,
                    "size_in": 14021,
                    "created": 1767225600.0,
                    "started": 1767225600.01,
                    "finished": 1767225600.31,
                    "stage": "export",
                    "attempt": 1,
                    "problem": None,
                    "summary": _SUMMARY,
                    "is_cached": False,
                    "cancel_requested": False,
                    "seconds": 0.3,
                    "peak": 104857600,
                    "links": {"self": f"/v1/jobs/{_ID}", "result": f"/v1/jobs/{_ID}/result"},
                }
            ]
        }
    )

    id: str
    state: JobState
    model_name: str = Field(description="What the model was called where it came from.")
    place: str = Field(description="The path or URL of the model, empty if it was uploaded.")
    settings: dict[str, Any] = Field(description="Keywords of tfconvert.convert.")
    has_samples: bool = Field(description="Whether calibration samples were uploaded.")
    size_in: int = Field(description="Bytes that were uploaded.")
    created: float
    started: float | None
    finished: float | None
    stage: str = Field(description="The stage that it was last known to be in.")
    attempt: int = Field(description="How often it was begun.")
    problem: Findings | None = Field(description="Why it failed.")
    summary: dict[str, Any] = Field(
        description="Size and operators of the result, extensions of the files beside it; if they were asked for, its "
        "fidelity, largest difference (max_absolute) and the verdicts on accelerators."
    )
    is_cached: bool = Field(description="Whether the result is that of an equal job.")
    cancel_requested: bool
    seconds: float = Field(description="How long the conversion took, with all that is around it.")
    peak: int = Field(description="Bytes of memory that the conversion had at most.")
    links: dict[str, str] = Field(description="Where its parts are; those that don't exist yet are left out.")

    @staticmethod
    def of(job: JobRecord) -> JobView:
        """Returns the public part of a job."""
        known = job._asdict()
        return JobView.model_construct(
            **{
                name: known[name]
                for name in JobView.model_fields
                if name in known and name not in ("problem", "settings")
            },
            has_samples=bool(job.calibration_sha256),
            settings=dict(job.settings),
            problem=None if job.problem is None else Findings.model_validate(job.problem),
            links=_links(job),
        )


def _links(job: JobRecord) -> Mapping[str, str]:
    own = f"/v1/jobs/{job.id}"
    links = {"self": own, "events": f"{own}/events"}
    if job.state == JobState.SUCCEEDED:
        beside = (f"result/{ending.removeprefix('.')}" for ending in job.summary.get("beside", ()))
        links |= {name: f"{own}/{name}" for name in ("result", *beside, "report", "report.html", "log")}
    elif job.state.is_final:
        links["retry"] = f"{own}/retry"
    else:
        links["cancel"] = f"{own}/cancel"
    return links


class JobPage(BaseModel):
    """A part of the list of jobs, the newest first."""

    jobs: list[JobView]
    next: str | None = Field(description="The `cursor` of the part that follows; null if this is the last.")


class NewToken(BaseModel):
    """A token that is asked for."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"examples": [{"name": "ci", "role": "user"}]})

    name: str = Field(min_length=1, max_length=100, pattern=r"^[A-Za-z0-9][A-Za-z0-9._@-]*$")
    role: Role = Role.USER
    max_active: int | None = Field(None, ge=1, le=1_000_000, description="Jobs that may wait or run.")
    per_minute: int | None = Field(None, ge=1, le=1_000_000, description="Requests in a minute.")
    max_running: int | None = Field(None, ge=0, le=1_000_000, description="Jobs that may run at a time; 0 for any.")
    max_bytes: int | None = Field(None, ge=0, le=1 << 60, description="Bytes of the uploads of its jobs; 0 for any.")


class TokenView(BaseModel):
    """The record of a token; the token itself is not stored."""

    id: str
    name: str
    role: Role
    max_active: int | None = Field(description="Jobs that may wait or run; null for what the server is set to.")
    per_minute: int | None = Field(description="Requests in a minute; null for what the server is set to.")
    max_running: int | None = Field(description="Jobs that may run at a time; null for what the server is set to.")
    max_bytes: int | None = Field(description="Bytes of uploads; null for what the server is set to.")
    created: float
    revoked: float | None

    @staticmethod
    def of(token: TokenRecord) -> TokenView:
        """Returns the public part of a token."""
        known = token._asdict()
        return TokenView.model_construct(**{name: known[name] for name in TokenView.model_fields})


class CreatedToken(TokenView):
    """A new token: the only time that it is shown."""

    token: str


class TokenList(BaseModel):
    """All tokens."""

    tokens: list[TokenView]


class Health(BaseModel):
    """That the server answers."""

    status: str = Field(examples=["ok"])
    version: str


class Readiness(BaseModel):
    """Whether everything that jobs need is available."""

    status: str = Field(examples=["ready"])
    checks: dict[str, str] = Field(
        description="By the name of the check: `ok`, or the problem. The 503 of a server has them, too.",
        examples=[{"database": "ok", "disk": "ok", "workers": "ok"}],
    )
    sandbox: dict[str, str] = Field(
        description="By what each part of a job is confined on this system, or why it is not.",
        examples=[{"files": "Landlock 6", "system calls": "a filter for x86_64"}],
    )


class OpWay(BaseModel):
    """One way in which an op is converted."""

    becomes: list[str] = Field(description="LiteRT's operators, and ops that are converted in turn.")
    dtypes: list[str] = Field(description="Element types of the operand that decides; empty for any.")
    note: str


class OpView(BaseModel):
    """How a TensorFlow op is converted."""

    op: str
    how: str
    topic: str
    ways: list[OpWay]
    by: str = Field(description="The pass that rewrites it.")
    reason: str


class FunctionView(BaseModel):
    """A function that is converted as a whole, by the name of what it implements."""

    interface: str
    summary: str


class Ops(BaseModel):
    """The table of support."""

    ops: list[OpView]
    functions: list[FunctionView]
