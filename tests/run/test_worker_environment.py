"""Tests of a worker's environment: its threads, its packages, and its compilers' folders and locks."""

import os
import subprocess
import sys
from pathlib import Path
from typing import get_args

import pytest

from snnbench.environments import compiler_caches
from snnbench.run import process
from snnbench.run.process import environment
from snnbench.worker.messages import EXCHANGES, Measure
from tests.fakes import CASE, ask, request
from tests.run.test_process import VERIFY, dying

MEASURES: tuple[Measure, ...] = get_args(Measure)


def test_environment_sets_threads_and_only_this_packages_path(tmp_path: Path) -> None:
    env = environment(3, tmp_path, {"EXTRA": "1"})
    assert {env[name] for name in env if name.endswith("_NUM_THREADS")} == {"3"}
    assert env["OPENBLAS_THREAD_TIMEOUT"] == "18"
    assert env["EXTRA"] == "1"
    assert [path.name for path in Path(env["PYTHONPATH"]).iterdir()] == ["snnbench"]
    assert environment(3, tmp_path)["PYTHONPATH"] == env["PYTHONPATH"]
    assert (Path(env["PYTHONPATH"]) / "snnbench").resolve() == process.PACKAGE.resolve()


def test_compiler_cache_is_empty_only_for_timed_passes(tmp_path: Path) -> None:
    """A timed worker's compiled files are removed at its end."""
    noting = dying("""names = ("TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR", "CUPY_CACHE_DIR", "CUDA_CACHE_PATH")
caches = [os.environ[name] for name in names]
print(*set(caches), os.path.isdir(caches[0]) and len(os.listdir(caches[0])), flush=True)
os.makedirs(caches[0], exist_ok=True)
open(os.path.join(caches[0], "kernel"), "w").close()
raise ValueError
""")
    logs = {measure: [ask(tmp_path, noting, request(measure)).log.split() for _ in range(2)] for measure in MEASURES}
    timed = [(words[0], words[1]) for words in logs["time"]]
    assert timed[0][0] != timed[1][0] and [empty for _, empty in timed] == ["0", "0"]
    assert not any(Path(folder).exists() for folder, _ in timed)
    persistent = {words[0] for measure in ("memory", "verify") for words in logs[measure]}
    assert persistent == {str(tmp_path / "compilers")}
    assert logs["verify"][1][1] == "1"


def test_jax_keeps_its_programs_only_for_cells_that_are_verified(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = "JAX_COMPILATION_CACHE_DIR"
    monkeypatch.setenv(name, "/elsewhere")
    kept = {measure: environment(1, tmp_path, process.further(measure, tmp_path)).get(name) for measure in MEASURES}
    for verified in ("verify", *EXCHANGES):
        assert kept.pop(verified, "").startswith(str(tmp_path / "compilers" / "jax"))
    assert kept == {"time": None, "memory": None}


def test_environment_of_the_caller_does_not_affect_threads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "64")
    monkeypatch.setenv("PYTHONPATH", "/elsewhere")
    env = environment(CASE.threads, tmp_path)
    assert env["OMP_NUM_THREADS"] == "1" and "/elsewhere" not in env["PYTHONPATH"]


@pytest.mark.parametrize("current", [False, True])
def test_worker_gets_no_variable_that_changes_how_python_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, current: bool
) -> None:
    for name, value in (("OPTIMIZE", "2"), ("WARNINGS", "error"), ("TRACEMALLOC", "25"), ("_GIL", "0")):
        monkeypatch.setenv(f"PYTHON{name}", value)
    env = environment(1, tmp_path, current=current)
    assert {name for name in env if name.startswith("PYTHON")} <= {"PYTHONPATH", "PYTHONNOUSERSITE", "PYTHONUNBUFFERED"}


def test_torch_extensions_have_a_permanent_folder_per_python(tmp_path: Path) -> None:
    noting = dying("print(os.environ['TORCH_EXTENSIONS_DIR'])\nraise ValueError")
    folders = {ask(tmp_path, noting, request(measure)).log.split()[0] for measure in ("time", "memory", "verify")}
    (folder,) = folders
    assert Path(folder) == compiler_caches.extensions_folder(environment(1, tmp_path), Path(sys.executable))
    assert Path(folder).is_relative_to(tmp_path)


def test_killed_worker_leaves_no_build_lock(tmp_path: Path) -> None:
    """Torch waits forever for the lock of a build, even if the lock's owner is dead."""
    folder = compiler_caches.extensions_folder(environment(1, tmp_path), Path(sys.executable)) / "dynamics"
    taken = f"os.makedirs({str(folder)!r}, exist_ok=True); open({str(folder / 'lock')!r}, 'w').close()"
    ending = ask(tmp_path, dying(f"{taken}; time.sleep(60)"), VERIFY, timeout_s=2)
    assert ending.timed_out and folder.is_dir() and list(folder.iterdir()) == []


def test_lock_is_released_once_no_worker_can_hold_it(tmp_path: Path) -> None:
    old, young = tmp_path / "old" / "lock", tmp_path / "young" / "lock"
    for lock in (old, young):
        lock.parent.mkdir()
        lock.touch()
    os.utime(old, (0, 0))
    compiler_caches.release_locks(tmp_path, older_than_s=900)
    assert not old.exists() and young.exists()
    compiler_caches.release_locks(tmp_path)
    assert not young.exists()


def test_environment_of_gpu_frameworks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """JAX refuses both names of the fraction at once, and then lists no GPU at all."""
    monkeypatch.setenv("XLA_PYTHON_CLIENT_MEM_FRACTION", "0.5")
    env = environment(1, tmp_path)
    assert env["XLA_PYTHON_CLIENT_PREALLOCATE"] == "false"
    assert env["XLA_CLIENT_MEM_FRACTION"] == "0.95" and "XLA_PYTHON_CLIENT_MEM_FRACTION" not in env
    assert env["TEARDOWN_CUPTI"] == "0"


def test_worker_in_the_current_python_sees_its_parents_packages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "carried.py").write_text("")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "site"))
    monkeypatch.delenv("PYTHONNOUSERSITE", raising=False)
    command = [sys.executable, "-P", "-c", "import carried, snnbench"]
    ours, managed = environment(1, tmp_path, current=True), environment(1, tmp_path)
    assert subprocess.run(command, env=ours).returncode == 0
    assert subprocess.run(command, env=managed, stderr=subprocess.DEVNULL).returncode != 0
    assert "PYTHONNOUSERSITE" not in ours and managed["PYTHONNOUSERSITE"] == "1"
