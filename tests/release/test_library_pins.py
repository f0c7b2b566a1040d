"""Tests of the real libraries' pins: old releases are made again, and all pins resolve as with a GPU."""

from pathlib import Path

import pytest
from packaging.requirements import Requirement

from snnbench.adapter.declaration import Adapter
from snnbench.environments import store
from tests.managed import ROOT, snnbench
from tests.release.test_libraries import adapters

pytestmark = pytest.mark.libraries

__all__ = ["adapters"]


def test_old_releases_are_made_again_without_the_network(
    adapters: dict[str, Adapter], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From pins, and from uv's cache, filled when the environments were first made."""
    old = {"lava-dl": "0.6.0", "spikingjelly/old-torch": "0.0.0.0.14", "spyx-haiku": "0.1.20"}
    made = snnbench("env", "sync", *old, cwd=tmp_path)
    assert made.returncode == 0, made.stderr[-2000:]
    monkeypatch.setenv("SNNBENCH_HOME", str(tmp_path / "again"))
    monkeypatch.setenv("UV_OFFLINE", "1")
    again = snnbench("env", "sync", *old, cwd=tmp_path)
    assert again.returncode == 0, again.stderr[-2000:]
    for contender, version in old.items():
        library, _, variant = contender.partition("/")
        adapter = adapters[library]
        planned = store.plan(adapter, variant or adapter.default, cuda=False)
        name = adapter.variants[variant or adapter.default].pins.distribution
        assert store.versions(planned.python)[name] == version


def test_pins_resolve_as_on_a_machine_with_a_gpu(adapters: dict[str, Adapter]) -> None:
    """Variants only for CUDA devices are not installed here; the test still checks that their pins agree."""
    done = snnbench("env", "sync", "--dry-run", cwd=ROOT)
    assert done.returncode == 0, done.stderr[-2000:]
    resolved = dict(line.split(": ", 1) for line in done.stdout.splitlines())
    for adapter in adapters.values():
        for name, variant in adapter.variants.items():
            planned = store.plan(adapter, name, cuda=True)
            kept_out = {Requirement(line).name for line in planned.overrides}
            pinned = {Requirement(line).name for line in planned.requirements} - kept_out
            names = {pin.split("==")[0] for pin in resolved[planned.adapter].split()}
            assert pinned <= names, (planned.adapter, variant.pins)
