"""Tests of the builds of PyTorch: which are planned, and what uv is asked for, also without PyTorch's index."""

import shlex
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import uv

from snnbench.environments import store, torch_builds
from tests.environments.test_store import adapter, home, plan, quiet

__all__ = ["home"]
TORCH = ("torch==2.13.0",)


@pytest.fixture(autouse=True)
def no_settings(home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """As for a user who has set nothing, and in a process that has asked for no index yet."""
    for name in ("UV_FIND_LINKS", "PIP_FIND_LINKS"):
        monkeypatch.delenv(name, raising=False)
    torch_builds._is_reached.cache_clear()
    yield
    torch_builds._is_reached.cache_clear()


@pytest.fixture
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Path]:
    """A function that replaces uv by one that installs nothing, logs, and fails where a condition of sh holds."""

    def replace_uv(fails: str) -> Path:
        program, logged = tmp_path / "uv", tmp_path / "log"
        program.write_text(
            f'#!/bin/sh\n[ "$1" = venv ] && exec {shlex.quote(uv_program)} "$@"\n'
            f'echo "$2 ${{UV_TORCH_BACKEND-ordinary}} ${{UV_HTTP_RETRIES-retries}}" >> {shlex.quote(str(logged))}\n'
            f'if {fails}; then echo "error: Failed to fetch"; exit 2; fi\n'
        )
        program.chmod(0o755)
        monkeypatch.setattr(uv, "find_uv_bin", lambda: str(program))
        return logged

    uv_program = uv.find_uv_bin()
    return replace_uv


@pytest.mark.parametrize(
    ("dependencies", "cuda", "variables", "expected"),
    [
        (TORCH, False, {}, "cpu"),
        (TORCH, True, {}, ""),
        (("torchx==1", "jax==0.10.2"), False, {}, ""),
        (TORCH, False, {"UV_TORCH_BACKEND": "cu126"}, "cu126"),
        (TORCH, False, {"UV_TORCH_BACKEND": ""}, ""),
        (TORCH, False, {"PIP_FIND_LINKS": "{}"}, ""),
        (TORCH, False, {"UV_FIND_LINKS": "https://mirror.example,{}"}, ""),
    ],
)
def test_builds_are_small_where_no_gpu_is_seen_and_the_user_names_none(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    dependencies: tuple[str, ...],
    cuda: bool,
    variables: dict[str, str],
    expected: str,
) -> None:
    (tmp_path / "torch-2.13.0+cpu-cp311-cp311-linux_x86_64.whl").touch()
    for name, value in variables.items():
        monkeypatch.setenv(name, value.format(tmp_path))
    assert plan(adapter(dependencies=dependencies), cuda).torch_builds == expected


def test_environment_of_a_machine_with_a_gpu_is_another_one(monkeypatch: pytest.MonkeyPatch) -> None:
    small, large = (plan(adapter(dependencies=TORCH), cuda).key for cuda in (False, True))
    assert small != large
    monkeypatch.setenv("UV_TORCH_BACKEND", "cpu")
    assert plan(adapter(dependencies=TORCH)).key == small


def test_small_builds_are_installed_and_said(log: Callable[[str], Path]) -> None:
    logged, said = log("false"), list[str]()
    for name in ("a", "b"):
        store.sync(plan(adapter(name, (*TORCH, f"{name}==1"))), said.append)
    assert logged.read_text().splitlines() == ["compile cpu 0", "install cpu retries", "install cpu retries"]
    made = [line for line in said if "making" in line]
    assert len(made) == 2 and all(line.endswith(f"{torch_builds.WHY})") for line in made)


def test_index_out_of_reach_is_asked_once_and_said_once(log: Callable[[str], Path]) -> None:
    logged, said = log('[ "$UV_TORCH_BACKEND" ]'), list[str]()
    for name in ("a", "b"):
        assert store.is_ready(store.sync(plan(adapter(name, (*TORCH, f"{name}==1"))), said.append))
    assert logged.read_text().splitlines() == ["compile cpu 0", *2 * ["install ordinary retries"]]
    assert len([line for line in said if "out of reach" in line]) == 1


def test_pin_without_a_small_build_comes_from_the_ordinary_index(log: Callable[[str], Path]) -> None:
    logged = log('[ "$2 $UV_TORCH_BACKEND" = "install cpu" ]')
    assert store.is_ready(store.sync(plan(adapter(dependencies=TORCH)), quiet))
    assert logged.read_text().splitlines()[1:] == ["install cpu retries", "install ordinary retries"]


def test_user_who_names_builds_gets_no_others(log: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UV_TORCH_BACKEND", "cpu")
    logged = log('[ "$2" = install ]')
    with pytest.raises(store.EnvironmentFailed, match="Failed to fetch"):
        store.sync(plan(adapter(dependencies=TORCH)), quiet)
    assert logged.read_text().splitlines() == ["install cpu retries"]
