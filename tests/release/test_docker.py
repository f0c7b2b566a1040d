"""Tests of the image, built by buildah on a bare Debian, and run without a network."""

import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

import snnbench
from snnbench import checking
from snnbench.recording import reading

pytestmark = pytest.mark.docker

ROOT = Path(__file__).parents[2]
DOCKERFILE = ROOT / "docker" / "Dockerfile"
REQUIRED = "docker" in os.environ.get("SNNBENCH_TEST_REQUIRES", "").replace(",", " ").split()
SUITE = "bookworm"
"""The Debian release of the Dockerfile's own base image; a bare Debian of this name replaces it."""
OWNER, STRANGER = 12345, 54321
"""User ids unknown to this machine and to the image."""


@dataclass(frozen=True)
class Engine:
    """buildah with its own store, in a folder."""

    folder: Path

    def __call__(self, *arguments: str, offline: bool = False, fails: bool = False) -> str:
        """Run buildah. Returns its output; an unexpected exit status fails the test."""
        store = ["--root", str(self.folder / "store"), "--runroot", str(self.folder / "run")]
        command = [*(["unshare", "--net"] if offline else []), "buildah", *store, *arguments]
        done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        assert (done.returncode != 0) == fails, f"{' '.join(command)}: {done.stdout[-3000:]}"
        return done.stdout.strip()

    def build(self, base: str, *arguments: str, fails: bool = False) -> str:
        """Build the Dockerfile as the image `snnbench`, on another base."""
        options = ["--isolation", "chroot", "--format", "docker", "-f", str(DOCKERFILE), "-t", "snnbench"]
        given = [f"--build-arg=BASE_IMAGE={base}", *(f"--build-arg={one}" for one in arguments)]
        return self("build", *options, *reach(), *given, ".", fails=fails)

    def run(self, *words: str, results: Path, user: int | None = None) -> str:
        """Run these words in a new container without a network, as the image's entry point does."""
        container = self("from", "--pull-never", "snnbench").splitlines()[-1]
        who = ["--user", f"{user}:{user}"] if user else []
        try:
            mounted = ["--isolation", "chroot", "--volume", f"{results}:/results", *who]
            return self("run", *mounted, container, "--", *words, offline=True)
        finally:
            self("rm", container)


def reach() -> list[str]:
    """Build options that let pip and uv find packages in the same places as on this machine."""
    options = []
    for name in ("PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "PIP_FIND_LINKS", "PIP_CERT"):
        words = os.environ.get(name, "").split()
        for position, word in enumerate(words):
            if (path := Path(word).resolve()).exists() and "://" not in word:  # it must be there in the build, too
                folder = f"/run/given/{name.lower()}-{position}"
                options.append(f"--volume={path.parent if path.is_file() else path}:{folder}:ro")
                words[position] = f"{folder}/{path.name}" if path.is_file() else folder
        if words:
            options.append(f"--build-arg={name}={' '.join(words)}")
    if os.environ.get("PIP_FIND_LINKS"):  # uv ignores a folder if its backend names its own index
        options.append("--build-arg=UV_TORCH_BACKEND=")
    return options


def mirror() -> str:
    """This machine's apt source of the suite, or "" for debootstrap's default."""
    command = ["apt-get", "indextargets", "--format", "$(REPO_URI) $(RELEASE)", "Created-By: Packages"]
    lines = subprocess.run(command, capture_output=True, text=True).stdout.splitlines()
    return next((line.split()[0] for line in lines if line.split()[1:] == [SUITE]), "")


@pytest.fixture(scope="module")
def engine() -> Iterator[Engine]:
    """buildah, with a bare Debian as the image `base`."""
    missing = [name for name in ("buildah", "debootstrap") if not shutil.which(name)]
    missing += [] if os.geteuid() == 0 else ["root's rights"]
    if missing:
        reason = f"no {', '.join(missing)} here (on Debian as root: apt-get install buildah debootstrap)"
        pytest.fail(reason) if REQUIRED else pytest.skip(reason)
    with tempfile.TemporaryDirectory(prefix="snnbench-image-") as name:  # gigabytes; pytest would keep its own folders
        folder = Path(name)
        made = [shutil.which("debootstrap"), "--variant=minbase", SUITE, str(folder / "debian"), mirror()]
        done = subprocess.run([one for one in made if one], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        assert done.returncode == 0, done.stdout[-3000:]
        buildah = Engine(folder)
        container = buildah("from", "scratch").splitlines()[-1]
        buildah("add", container, str(folder / "debian"), "/")
        buildah("commit", "--rm", container, "base")
        shutil.rmtree(folder / "debian")
        yield buildah
        buildah("rm", "--all")
        buildah("rmi", "--all", "--force")


@pytest.fixture(scope="module")
def image(engine: Engine) -> Engine:
    """The engine, with the image built for two contenders of one environment."""
    engine.build("localhost/base", "LIBRARIES=fused torch-loop", "REVISION=0123abc", "CREATED=2026-01-02T03:04:05Z")
    return engine


def owned(folder: Path, user: int) -> Path:
    """A new folder that belongs to this user and to the group of the same number."""
    folder.mkdir(parents=True)
    os.chown(folder, user, user)
    return folder


def owners(folder: Path) -> set[tuple[int, int]]:
    """(user, group) ids of everything in a folder."""
    statuses = [path.stat() for path in folder.rglob("*")]
    return {(one.st_uid, one.st_gid) for one in statuses}


SMALL = [
    *("--config", "quick", "--set", 'sweep.libraries=["torch-loop"]', "--only", "profile=zero"),
    *("--set", "protocol.trials=1", "--set", "protocol.memory_trials=1", "--set", 'protocol.phases=["train"]'),
    *("--set", "protocol.repetitions=3", "--set", "protocol.max_phase_seconds=0.5", "--set", "case.neurons=64"),
    *("--set", "case.time_steps=25", "--set", "protocol.remeasure=0"),
]


def test_gpu_build_with_cpu_pytorch_is_refused(engine: Engine) -> None:
    output = engine.build("localhost/base", "DEVICE=cuda", "UV_TORCH_BACKEND=cpu", fails=True)
    assert "DEVICE=cuda needs PyTorch for CUDA: say UV_TORCH_BACKEND=cu130, too" in output
    assert "DEVICE=gpu: expected cpu or cuda" in engine.build("localhost/base", "DEVICE=gpu", fails=True)


def test_recording_has_the_folders_owner_and_names_the_image(image: Engine, tmp_path: Path) -> None:
    results = owned(tmp_path / "results", OWNER)
    image.run("snnbench", "run", *SMALL, results=results)
    (folder,) = results.iterdir()
    assert owners(results) == {(OWNER, OWNER)}

    recording = reading.read(folder)
    assert {(one.library, one.measure, one.status) for one in recording.records} == {
        ("torch-loop", measure, "measured") for measure in ("time", "memory")
    }
    assert list(checking.check(folder)) == []
    assert recording.machine["image"] == {
        "version": snnbench.__version__,
        "revision": "0123abc",
        "created": "2026-01-02T03:04:05Z",
        "base": "localhost/base",
        "device": "cpu",
        "libraries": "fused torch-loop",
    }


def test_any_user_id_can_compile_at_run_time(image: Engine, tmp_path: Path) -> None:
    results = owned(tmp_path / "results", STRANGER)
    few = ("--set", 'sweep.libraries=["fused/cpu", "torch-loop/compile"]', "--set", "protocol.memory_trials=0")
    image.run("snnbench", "run", *SMALL, *few, "-o", "/results/mine", results=results, user=STRANGER)
    assert owners(results) == {(STRANGER, STRANGER)}
    statuses = {(f"{one.library}/{one.variant}", one.status) for one in reading.read(results / "mine").records}
    assert statuses == {(name, "measured") for name in ("fused/cpu", "torch-loop/compile")}


def test_labels_follow_the_open_container_initiative(image: Engine) -> None:
    labels = json.loads(image("inspect", "--type", "image", "snnbench"))["Docker"]["config"]["Labels"]
    prefix = "org.opencontainers.image."
    standard = {name.removeprefix(prefix): value for name, value in labels.items() if name.startswith(prefix)}
    assert standard.pop("description")
    assert standard == {
        "title": "snnbench",
        "licenses": "MIT",
        "version": snnbench.__version__,
        "revision": "0123abc",
        "created": "2026-01-02T03:04:05Z",
        "base.name": "localhost/base",
    }
