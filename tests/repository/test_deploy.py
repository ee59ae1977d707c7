"""The files for deployment start the current service."""

from __future__ import annotations

import re
import runpy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import yaml

from tfconvert.cli.serve import serve
from tfconvert.service.config import ServiceConfig, read_config
from tfconvert.service.http.system import ROUTES

_PREFIX = "TFCONVERT_SERVICE_"


def _documents(root: Path, name: str) -> list[Any]:
    return list(yaml.safe_load_all((root / "deploy" / name).read_text("utf-8")))


def _container(root: Path) -> dict[str, Any]:
    (deployment,) = (each for each in _documents(root, "kubernetes.yaml") if each["kind"] == "Deployment")
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    return dict(container)


def _stage(root: Path, name: str) -> str:
    text = (root / "Dockerfile").read_text("utf-8").replace("\\\n", "")
    found = re.search(rf"^FROM \S+ AS {name}\n(.*?)^FROM ", text, re.MULTILINE | re.DOTALL)
    assert found is not None
    return found[1]


def _environments(root: Path) -> Iterator[dict[str, str]]:
    (compose,) = _documents(root, "compose.yaml")
    yield compose["services"]["service"]["environment"]
    yield {each["name"]: each["value"] for each in _container(root)["env"]}
    yield dict(re.findall(rf"({_PREFIX}\w+)=(\S+)", _stage(root, "service")))


def test_all_variables_are_settings(root: Path) -> None:
    for environment in _environments(root):
        assert environment
        config = read_config("", environment)
        for name, text in environment.items():
            assert name.startswith(_PREFIX)
            assert str(getattr(config, name.removeprefix(_PREFIX).lower())) == text or name.endswith("GRACE")


def test_all_arguments_are_options(root: Path) -> None:
    (compose,) = _documents(root, "compose.yaml")
    known = {name for each in serve.params if isinstance(each, click.Option) for name in each.opts}
    (default,) = re.findall(r"^CMD (\[.*\])$", _stage(root, "service"), re.MULTILINE)
    for arguments in (compose["services"]["service"]["command"], _container(root)["args"], yaml.safe_load(default)):
        assert {each for each in arguments if each.startswith("-")} <= known
        assert arguments[-1].startswith("/data/")


def test_health_check_paths_exist(root: Path) -> None:
    container = _container(root)
    paths = {getattr(route, "path", "") for route in ROUTES.routes}
    asked = {container[probe]["httpGet"]["path"] for probe in ("startupProbe", "livenessProbe", "readinessProbe")}
    checked = re.findall(r"127\.0\.0\.1:(\d+)(/\w+)", _stage(root, "service"))
    assert asked == {"/healthz", "/readyz"}
    assert asked | {path for _, path in checked} <= paths
    port = ServiceConfig().port
    assert {int(number) for number, _ in checked} == {port}
    assert container["ports"] == [{"name": "http", "containerPort": port}]
    assert f"EXPOSE {port}\n" in _stage(root, "service")


def test_servers_have_time_to_end(root: Path) -> None:
    (compose,) = _documents(root, "compose.yaml")
    (deployment,) = (each for each in _documents(root, "kubernetes.yaml") if each["kind"] == "Deployment")
    grace = ServiceConfig().grace
    assert int(compose["services"]["service"]["stop_grace_period"].removesuffix("s")) > grace
    assert deployment["spec"]["template"]["spec"]["terminationGracePeriodSeconds"] > grace


def test_nothing_runs_as_root(root: Path) -> None:
    (deployment,) = (each for each in _documents(root, "kubernetes.yaml") if each["kind"] == "Deployment")
    context = deployment["spec"]["template"]["spec"]["securityContext"]
    assert context["runAsNonRoot"]
    assert f"USER {context['runAsUser']}\n" in _stage(root, "service")
    assert _container(root)["securityContext"]["readOnlyRootFilesystem"]


def test_the_page_names_every_setting(root: Path) -> None:
    page = (root / "docs" / "service.md").read_text("utf-8")
    assert [name for name in ServiceConfig._fields if f"`{name}`" not in page] == []
    assert [
        name for name in re.findall(rf"{_PREFIX}([A-Z_]+)", page) if name.lower() not in ServiceConfig._fields
    ] == []


def test_the_picture_is_current(root: Path) -> None:
    made = runpy.run_path(str(root / "docs" / "draw_service.py"))["draw"]()
    assert (root / "docs" / "service.svg").read_text("utf-8") == made
