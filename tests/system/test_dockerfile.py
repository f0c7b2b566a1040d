"""Tests of docker/Dockerfile: its base, its content, and the description of all its arguments in docker/README.md."""

import json
import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import snnbench
from snnbench.adapter.contender import find
from snnbench.adapter.discovery import discover
from snnbench.cli.options import config_path
from snnbench.environments.store import plan
from snnbench.plan import config

ROOT = Path(__file__).parents[2]
DOCKERFILE = ROOT / "docker" / "Dockerfile"
README = (ROOT / "docker" / "README.md").read_text(encoding="utf-8")


def instructions() -> list[tuple[str, str]]:
    """(instruction, rest) of the Dockerfile, continued lines joined."""
    text = re.sub(r"^\s*#.*\n", "", DOCKERFILE.read_text(encoding="utf-8"), flags=re.MULTILINE)
    lines = [line.split(maxsplit=1) for line in text.replace("\\\n", " ").splitlines() if line.strip()]
    return [(name, " ".join(rest.split())) for name, rest in lines]


def arguments() -> dict[str, str | None]:
    """Name -> default of every build argument; the first default if several exist."""
    defaults: dict[str, str | None] = {}
    for _, rest in (one for one in instructions() if one[0] == "ARG"):
        for name, default in re.findall(r'(\w+)(?:=("[^"]*"|\S*))?', rest):
            defaults[name] = defaults.get(name) or (default.strip('"') if default else None)
    return defaults


def test_base_image_is_pinned_and_used_by_every_stage() -> None:
    assert re.fullmatch(r"debian:[a-z]+-[0-9]{8}-slim@sha256:[0-9a-f]{64}", str(arguments()["BASE_IMAGE"]))
    assert [rest for name, rest in instructions() if name == "FROM"] == [
        "${BASE_IMAGE} AS base",
        "base AS build",
        "base",
    ]


def test_entry_point_is_snnbench_in_the_folder_of_results() -> None:
    last = dict(instructions())
    assert json.loads(last["ENTRYPOINT"]) == ["snnbench"]
    assert (last["WORKDIR"], "UV_OFFLINE=1" in last["ENV"]) == ("/", True)


@pytest.mark.parametrize("cuda", [False, True])
def test_standard_environments_are_of_quick_core_and_chart(cuda: bool) -> None:
    """On a machine with a GPU two of them compile EXODUS."""
    adapters = discover()
    loaded = [config.load(config_path(name), default_threads=2) for name in ("quick", "core", "chart")]
    required = {name for one in loaded for sweep in one.sweeps for name in sweep.libraries}
    named = {name if "/" in name else f"{name}/*" for name in str(arguments()["LIBRARIES"]).split()}

    def planned(patterns: set[str]) -> dict[str, tuple[str, ...]]:
        contenders = [one for pattern in patterns for one in find(pattern, adapters)]
        environments = [
            plan(adapters[library], variant, cuda)
            for library, variant in contenders
            if cuda or "cpu" in adapters[library].variants[variant].devices
        ]
        return {one.key: one.built for one in environments}

    made = planned(named)
    assert set(made) == set(planned(required))
    assert sum(map(bool, made.values())) == (2 if cuda else 0)


def test_versions_of_the_harness_are_those_that_it_asks_for() -> None:
    """docker/constraints.txt is made by `uv pip compile --universal --extra parquet pyproject.toml`."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    asked = map(Requirement, (*project["dependencies"], *project["optional-dependencies"]["parquet"]))
    lines = (ROOT / "docker" / "constraints.txt").read_text(encoding="utf-8").splitlines()
    locked = {canonicalize_name(one.name): one.specifier for one in map(Requirement, lines)}
    for one in asked:
        (pin,) = locked[canonicalize_name(one.name)]
        assert pin.operator == "==" and one.specifier.contains(pin.version), one


def test_image_names_its_version() -> None:
    assert arguments()["VERSION"] == snnbench.__version__


def test_every_build_argument_is_documented() -> None:
    table = "\n".join(line for line in README.splitlines() if line.startswith("| `"))
    missing = [name for name in arguments() if f"`{name}`" not in table]
    assert not missing, f"docker/README.md, table of build arguments: {', '.join(missing)}"
    assert set(re.findall(r"--build-arg (\w+)", README)) <= set(arguments())


def test_copied_files_are_not_ignored() -> None:
    """Only the named files of the folder get into the build, and snnbench is installed from them."""
    _, rule, *exceptions = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    assert rule == "*"
    assert all((ROOT / line.removeprefix("!")).exists() for line in exceptions if line.startswith("!"))
    copied = [rest.split()[0] for name, rest in instructions() if name == "COPY" and "--from" not in rest]
    assert copied == [".", "docker/snnbench"]
    assert {f"!{name}" for name in ("README.md", "adapters", "configs", "docker/snnbench", "snnbench")} <= set(
        exceptions
    )
