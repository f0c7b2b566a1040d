"""The image: what its Dockerfile says, and, marked `docker`, the image itself, built and run by buildah."""

import json
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

import snnbench
from snnbench import checking, config, record
from snnbench.cli.options import config_path

ROOT = Path(__file__).parent.parent
DOCKERFILE = ROOT / "docker" / "Dockerfile"
README = (ROOT / "docker" / "README.md").read_text(encoding="utf-8")
REQUIRED = "docker" in os.environ.get("SNNBENCH_TEST_REQUIRES", "").replace(",", " ").split()
SUITE = "bookworm"
"""What the Dockerfile's own base image is; a bare Debian of this name stands in for it."""
OWNER, STRANGER = 12345, 54321
"""User ids that neither this machine nor the image knows."""


def instructions() -> list[tuple[str, str]]:
    """(instruction, rest) of the Dockerfile, continued lines joined."""
    text = re.sub(r"^\s*#.*\n", "", DOCKERFILE.read_text(encoding="utf-8"), flags=re.MULTILINE)
    lines = [line.split(maxsplit=1) for line in text.replace("\\\n", " ").splitlines() if line.strip()]
    return [(name, " ".join(rest.split())) for name, rest in lines]


def arguments() -> dict[str, str | None]:
    """Name -> default of every build argument; that before the first FROM, where there are several."""
    found: dict[str, str | None] = {}
    for _, rest in (one for one in instructions() if one[0] == "ARG"):
        for name, default in re.findall(r'(\w+)(?:=("[^"]*"|\S*))?', rest):
            found[name] = found.get(name) or (default.strip('"') if default else None)
    return found


def test_the_base_image_is_pinned_to_a_release_and_every_stage_is_made_from_it() -> None:
    assert re.fullmatch(rf"debian:{SUITE}-slim", str(arguments()["BASE_IMAGE"]))
    assert [rest for name, rest in instructions() if name == "FROM"] == [
        "${BASE_IMAGE} AS base",
        "base AS build",
        "base",
    ]


def test_the_entry_point_is_snnbench_in_the_folder_of_results() -> None:
    last = dict(instructions())
    assert json.loads(last["ENTRYPOINT"]) == ["snnbench"]
    assert (last["WORKDIR"], "UV_OFFLINE=1" in last["ENV"]) == ("/", True)


def test_the_standard_libraries_are_those_of_quick_and_core() -> None:
    loaded = [config.load(config_path(name)) for name in ("quick", "core")]
    asked = {name.split("/")[0] for one in loaded for sweep in one.sweeps for name in sweep.libraries}
    assert str(arguments()["LIBRARIES"]).split() == sorted(asked)


def test_the_image_names_the_version_that_it_holds() -> None:
    assert arguments()["VERSION"] == snnbench.__version__


def test_every_build_argument_is_documented() -> None:
    table = "\n".join(line for line in README.splitlines() if line.startswith("| `"))
    missing = [name for name in arguments() if f"`{name}`" not in table]
    assert not missing, f"docker/README.md, table of build arguments: {', '.join(missing)}"
    assert set(re.findall(r"--build-arg (\w+)", README)) <= set(arguments())


def test_what_is_copied_from_the_folder_is_not_ignored() -> None:
    """Of the folder only what is named gets into the build, and snnbench is installed from it."""
    _, rule, *kept = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    assert rule == "*"
    assert all((ROOT / line.removeprefix("!")).exists() for line in kept if line.startswith("!"))
    copied = [rest.split()[0] for name, rest in instructions() if name == "COPY" and "--from" not in rest]
    assert copied == [".", "docker/snnbench"]
    assert {f"!{name}" for name in ("README.md", "adapters", "configs", "docker/snnbench", "snnbench")} <= set(kept)


@dataclass(frozen=True)
class Engine:
    """buildah with a store of its own, in a folder."""

    folder: Path

    def __call__(self, *arguments: str, offline: bool = False, fails: bool = False) -> str:
        """What it printed; its errors are the test's."""
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
        """Run words in a new container without a network, as the image's entry point would."""
        container = self("from", "--pull-never", "snnbench").splitlines()[-1]
        who = ["--user", f"{user}:{user}"] if user else []
        try:
            mounted = ["--isolation", "chroot", "--volume", f"{results}:/results", *who]
            return self("run", *mounted, container, "--", *words, offline=True)
        finally:
            self("rm", container)


def reach() -> list[str]:
    """Options of a build that let pip and uv find packages in it where they are found here."""
    options = []
    for name in ("PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "PIP_FIND_LINKS", "PIP_CERT"):
        words = os.environ.get(name, "").split()
        for place, word in enumerate(words):
            if (path := Path(word).resolve()).exists() and "://" not in word:  # it must be there in the build, too
                folder = f"/run/given/{name.lower()}-{place}"
                options.append(f"--volume={path.parent if path.is_file() else path}:{folder}:ro")
                words[place] = f"{folder}/{path.name}" if path.is_file() else folder
        if words:
            options.append(f"--build-arg={name}={' '.join(words)}")
    if os.environ.get("PIP_FIND_LINKS"):  # a folder is not looked at where uv's backend names an index of its own
        options.append("--build-arg=UV_TORCH_BACKEND=")
    return options


def mirror() -> str:
    """Where apt has the suite from on this machine, or nothing for debootstrap's own."""
    asked = ["apt-get", "indextargets", "--format", "$(REPO_URI) $(RELEASE)", "Created-By: Packages"]
    said = subprocess.run(asked, capture_output=True, text=True).stdout.splitlines()
    return next((line.split()[0] for line in said if line.split()[1:] == [SUITE]), "")


@pytest.fixture(scope="module")
def engine() -> Iterator[Engine]:
    """buildah, with a bare Debian as the image `base`."""
    missing = [name for name in ("buildah", "debootstrap") if not shutil.which(name)]
    missing += [] if os.geteuid() == 0 else ["root's rights"]
    if missing:
        reason = f"no {', '.join(missing)} here (on Debian as root: apt-get install buildah debootstrap)"
        pytest.fail(reason) if REQUIRED else pytest.skip(reason)
    with tempfile.TemporaryDirectory(prefix="snnbench-image-") as name:  # gigabytes, which pytest's folders would keep
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
    found = [path.stat() for path in folder.rglob("*")]
    return {(one.st_uid, one.st_gid) for one in found}


SMALL = [
    *("--config", "quick", "--set", 'sweep.libraries=["fused/cpu", "torch-loop"]', "--only", "profile=zero"),
    *("--set", "protocol.trials=1", "--set", "protocol.memory_trials=1", "--set", 'protocol.phases=["train"]'),
    *("--set", "protocol.repetitions=3", "--set", "protocol.max_phase_seconds=0.5", "--set", "case.neurons=64"),
    *("--set", "case.time_steps=25"),
]


@pytest.mark.docker
def test_a_build_for_gpus_with_pytorch_for_the_cpu_says_what_to_do(engine: Engine) -> None:
    said = engine.build("localhost/base", "DEVICE=cuda", "UV_TORCH_BACKEND=cpu", fails=True)
    assert "DEVICE=cuda needs PyTorch for CUDA: say UV_TORCH_BACKEND=cu130, too" in said
    assert "DEVICE=gpu: expected cpu or cuda" in engine.build("localhost/base", "DEVICE=gpu", fails=True)


@pytest.mark.docker
def test_a_recording_belongs_to_the_owner_of_the_folder_and_names_the_image(image: Engine, tmp_path: Path) -> None:
    results = owned(tmp_path / "results", OWNER)
    image.run("snnbench", "run", *SMALL, results=results)
    (folder,) = results.iterdir()
    assert owners(results) == {(OWNER, OWNER)}

    recording = record.read(folder)
    assert {(one.library, one.measure, one.status) for one in recording.records} == {
        (library, measure, "measured") for library in ("fused", "torch-loop") for measure in ("time", "memory")
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


@pytest.mark.docker
def test_any_user_id_runs_what_compiles_at_run_time(image: Engine, tmp_path: Path) -> None:
    results = owned(tmp_path / "results", STRANGER)
    few = ("--set", 'sweep.libraries=["fused/cpu", "torch-loop/compile"]', "--set", "protocol.memory_trials=0")
    image.run("snnbench", "run", *SMALL, *few, "-o", "/results/mine", results=results, user=STRANGER)
    assert owners(results) == {(STRANGER, STRANGER)}
    found = {(f"{one.library}/{one.variant}", one.status) for one in record.read(results / "mine").records}
    assert found == {(name, "measured") for name in ("fused/cpu", "torch-loop/compile")}


@pytest.mark.docker
def test_the_labels_are_those_of_the_open_container_initiative(image: Engine) -> None:
    labels = json.loads(image("inspect", "--type", "image", "snnbench"))["Docker"]["config"]["Labels"]
    prefix = "org.opencontainers.image."
    found = {name.removeprefix(prefix): value for name, value in labels.items() if name.startswith(prefix)}
    assert found.pop("description")
    assert found == {
        "title": "snnbench",
        "licenses": "MIT",
        "version": snnbench.__version__,
        "revision": "0123abc",
        "created": "2026-01-02T03:04:05Z",
        "base.name": "localhost/base",
    }
