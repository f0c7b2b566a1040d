"""Managed environments: one per distinct set of pins, made by uv on first need and reused until the pins change."""

import contextlib
import json
import os
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.utils import canonicalize_name

from snnbench import workloads
from snnbench.adapter.contender import label
from snnbench.adapter.declaration import Adapter
from snnbench.adapter.discovery import data_folder
from snnbench.adapter.pins import Pins
from snnbench.digest import digest
from snnbench.environments import bytecode, cuda_toolkit, torch_builds
from snnbench.environments.uv_program import EnvironmentFailed, install
from snnbench.files import home, lock, write_whole

SCHEMA = 2  # of the keys and of the marker; 1: the first; 2: `built` and `metadata`
MARKER = "snnbench.json"  # written last: a folder without it is incomplete, and will be made anew
SKIPPED = {".git", ".venv", "__pycache__", "build", "dist"}
"""Folders of a package that do not change what is installed."""
FENCE = "# Ends uv's search for a project here: the overrides of one that is around would change the pins.\n[tool.uv]\n"
METADATA = "[tool.uv]\ndependency-metadata = [\n{}\n]\n"
LIST_VERSIONS = """import importlib.metadata, json
print(json.dumps([(one.metadata["Name"], one.version) for one in importlib.metadata.distributions()]))"""


@dataclass(frozen=True, slots=True)
class Environment:
    """A contender's environment, made or planned. `interpreter` is uv's argument: a path or a version specifier."""

    adapter: str
    source: Path
    key: str
    folder: Path
    python: Path
    interpreter: str
    requires_python: str
    requirements: tuple[str, ...]
    overrides: tuple[str, ...]
    built: tuple[str, ...] = ()
    metadata: tuple[str, ...] = ()
    torch_builds: str = ""

    @property
    def about(self) -> dict[str, str]:
        """The adapter it belongs to, for error messages."""
        known = {"name": self.adapter, "source": str(self.source), "requires_python": self.requires_python}
        return known | {"command": sync_command({self.adapter: self.source})}

    @property
    def pinned(self) -> dict[str, Any]:
        """The fields in the key and in the marker."""
        return {name: getattr(self, name) for name in PINNED_FIELDS}


PINNED_FIELDS = ("requires_python", "requirements", "overrides", "built", "metadata")


@dataclass(frozen=True, slots=True)
class Installed:
    """The marker of a folder under `home()/envs`. A folder without a marker has only `folder`."""

    folder: Path
    adapters: Sequence[str] = ()
    requires_python: str = ""
    requirements: Sequence[str] = ()
    overrides: Sequence[str] = ()
    built: Sequence[str] = ()
    metadata: Sequence[str] = ()
    versions: Mapping[str, str] = field(default_factory=dict)
    created: str = ""

    @property
    def size_bytes(self) -> int:
        """The folder's size on disk, including files shared with uv's cache. Slow: it visits every file."""
        return sum(path.lstat().st_blocks * 512 for path in self.folder.rglob("*"))


def sync_command(sources: Mapping[str, Path]) -> str:
    """The command that makes the environments of these contenders; a user's adapter is named by its file, too."""
    own = dict.fromkeys(path for path in sources.values() if path.parent != data_folder("adapters"))
    files = (word for path in own for word in ("--adapter", str(path)))
    return shlex.join(["snnbench", "env", "sync", *sources, *files])


def current() -> Path:
    """The interpreter of this process, for `--env current`."""
    return Path(sys.executable)


def plan(adapter: Adapter, variant: str, cuda: bool, workload: str = workloads.DEFAULT) -> Environment:
    """The environment for the pins of an adapter and a workload; it is not made yet. Raises EnvironmentFailed.

    One for NIR graphs has the packages of the library's importer, too.
    """
    packages, excluded = workloads.packages(workload)
    pins, more = adapter.variants[variant].pins, packages + adapter.nir * workloads.has_graphs(workload)
    pins = replace(pins, dependencies=pins.dependencies + more, overrides=pins.overrides + excluded)
    try:
        specifier = SpecifierSet(pins.requires_python)
        texts = (pins.dependencies + (pins.cuda if cuda else ()), pins.overrides, pins.built)
        named = [[_located(Requirement(one), adapter.path.parent) for one in some] for some in texts]
        requirements, overrides, built = (tuple(sorted({str(one) for one in some})) for some in named)
    except (InvalidSpecifier, InvalidRequirement) as error:
        raise EnvironmentFailed(f"{adapter.path}: script header: {str(error).splitlines()[0]}") from error
    fits = specifier.contains(".".join(map(str, sys.version_info[:3])), prereleases=True)
    interpreter = sys.executable if fits else str(specifier)
    abi = (sysconfig.get_config_var("SOABI") or sys.implementation.cache_tag) if fits else sysconfig.get_platform()
    pinned = (str(specifier), requirements, overrides, built, tuple(sorted(pins.metadata)))
    local = [_state(folder) for some in named for one in some if (folder := local_folder(one))]
    builds = torch_builds.planned(requirements, cuda)
    key = digest([SCHEMA, pinned, builds, abi, *local])
    folder = home() / "envs" / key
    own = adapter.variants[variant].pins
    name = label(adapter.name, variant) if own != adapter.variants[adapter.default].pins else adapter.name
    name += f" with {', '.join(more)}" if more else ""
    return Environment(name, adapter.path, key, folder, folder / "bin" / "python", interpreter, *pinned, builds)


def _located(requirement: Requirement, folder: Path) -> Requirement:
    """The requirement; `NAME @ file:PATH` of a package that has no release with the path from `folder`, absolute."""
    if requirement.url and requirement.url.startswith("file:") and not requirement.url.startswith("file://"):
        requirement.url = (folder / requirement.url.removeprefix("file:")).resolve().as_uri()
    return requirement


def local_folder(requirement: Requirement) -> Path | None:
    """The folder of a package that a requirement names by its path; None for any other requirement."""
    if not (requirement.url and requirement.url.startswith("file://")):
        return None
    folder = Path(unquote(urlsplit(requirement.url).path))
    return folder if folder.is_dir() else None


def _state(folder: Path) -> list[tuple[str, int]]:
    """When each file of a package was changed: another state is another environment."""
    files = (path for path in folder.rglob("*") if path.is_file() and not SKIPPED & set(path.relative_to(folder).parts))
    return sorted((str(path.relative_to(folder)), path.stat().st_mtime_ns) for path in files)


def is_ready(environment: Environment) -> bool:
    """Whether it is complete and its interpreter still exists: then it works offline."""
    return _read(environment.folder) is not None and os.access(environment.python, os.X_OK)


def sync(environment: Environment, say: Callable[[str], None]) -> Environment:
    """Make the environment if it is missing; passes uv's output to `say`, line by line. Raises EnvironmentFailed."""
    installed_already = _read(environment.folder)
    if installed_already and environment.adapter in installed_already.adapters and is_ready(environment):
        return environment
    try:
        with _locked(environment.folder, say) as lock:
            if not is_ready(environment):
                _make(environment, lock, say)
            elif installed_already := _read(environment.folder):
                _write(replace(installed_already, adapters=sorted({*installed_already.adapters, environment.adapter})))
    except BrokenPipeError:  # from the listener of `say`
        raise
    except OSError as error:
        if not is_ready(environment):  # if another user or an image made it, it is usable without our name in it
            reason = f"{environment.adapter}: {error.filename or environment.folder}: {error.strerror}"
            raise EnvironmentFailed(f"{reason}; set SNNBENCH_HOME to a folder that can be written") from error
    return environment


def versions(python: Path) -> dict[str, str]:
    """Canonical distribution name -> version: from a managed environment's marker, else from the interpreter."""
    if record := _read(python.parent.parent):
        return dict(record.versions)
    found_first = reversed(json.loads(_answer(python, LIST_VERSIONS)))  # the first on the path wins in a dictionary
    named = {canonicalize_name(name): version for name, version in dict(found_first).items() if name and version}
    return dict(sorted(named.items()))


def python_version(python: Path) -> str:
    """The version of an interpreter, such as 3.12.4. Raises EnvironmentFailed."""
    return _answer(python, "import platform; print(platform.python_version())")


def _answer(python: Path, program: str) -> str:
    """The last line that a program prints under an interpreter. Raises EnvironmentFailed."""
    # As a worker in this Python: without packages of the working directory, and in another Python than the current one
    # without those of PYTHONPATH and of the user's site folder.
    alone = ["-P"] if python == current() else ["-I"]
    try:
        printed = subprocess.check_output([python, *alone, "-c", program], stderr=subprocess.PIPE, text=True)
    except (OSError, subprocess.SubprocessError) as error:
        lines = (str(getattr(error, "stderr", None) or "").strip() or str(error)).splitlines()[-1]
        raise EnvironmentFailed(f"{python}: {lines}; expected a Python 3.8 or later that starts") from error
    return printed.splitlines()[-1]


def installed() -> list[Installed]:
    """Every environment under `home()`: incomplete ones, then the others, oldest first."""
    folders = [folder for folder in (home() / "envs").glob("*") if folder.is_dir()]
    return sorted((_read(folder) or Installed(folder) for folder in folders), key=lambda one: (one.created, one.folder))


def remove(environment: Installed, say: Callable[[str], None]) -> None:
    """Delete an environment; if it is being made, wait for that first."""
    with _locked(environment.folder, say):
        (environment.folder / MARKER).unlink(missing_ok=True)  # first: an interruption leaves it marked as incomplete
        shutil.rmtree(environment.folder, ignore_errors=True)


def resolve(environment: Environment) -> list[str]:
    """The versions that its pins resolve to, as `name==version`; nothing is installed. Raises EnvironmentFailed.

    Packages in `built` are left out: only their build knows their dependencies.
    """
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        options = _options(environment, folder)
        (folder / "asked.txt").write_text("".join(f"{line}\n" for line in environment.requirements))
        quiet = ["--quiet", "--no-header", "--no-annotate", "--python", environment.interpreter]
        lines = install(["pip", "compile", *quiet, *options, "asked.txt"], folder, lambda line: None, environment.about)
    return [line for line in lines if "==" in line]


def _make(environment: Environment, lock: int, say: Callable[[str], None]) -> None:
    folder, about = environment.folder, environment.about
    if os.statvfs(folder.parent).f_flag & os.ST_NOEXEC:
        reason = f"{folder.parent} is on a file system mounted noexec, from which no library can be loaded"
        raise EnvironmentFailed(f"{environment.adapter}: {reason}; set SNNBENCH_HOME to another folder")
    _require_exact(environment)
    shutil.rmtree(folder, ignore_errors=True)
    (folder.parent / "pyproject.toml").write_text(FENCE)
    small = torch_builds.variables(environment.torch_builds, say)
    what = ", ".join(environment.requirements) + (torch_builds.WHY if small else "")
    say(f"{environment.adapter}: making environment {environment.key} ({what})")
    venv = ["venv", "--quiet", "--no-project", "--python", environment.interpreter, str(folder)]
    install(venv, folder.parent, say, about, [lock])
    options = ["install", "--python", str(environment.python), *_options(environment, folder)]
    try:
        install(["pip", *options, *environment.requirements], folder, say, about, [lock], small)
    except EnvironmentFailed:
        if not small:
            raise
        say(f"{environment.adapter}: not in these builds; trying those of the ordinary index")
        install(["pip", *options, *environment.requirements], folder, say, about, [lock])
    toolkit = cuda_toolkit.prepare(folder)
    if environment.built:  # the build inspects installed packages: so without isolation, and after the others
        alone = ["--no-build-isolation", "--no-deps", "--no-cache"]  # uv's cache may have one for another PyTorch
        install(["pip", *options, *alone, *environment.built], folder, say, about, [lock], toolkit)
    bytecode.prepare(environment.python, folder, (other.folder for other in installed() if other.adapters), [lock])
    now = datetime.now(UTC).isoformat(timespec="seconds")
    installed_versions = versions(environment.python)
    _write(Installed(folder, [environment.adapter], **environment.pinned, versions=installed_versions, created=now))


def _require_exact(environment: Environment) -> None:
    """Raise EnvironmentFailed for a requirement that is no exact pin; the message has the pin that it resolves to.

    Other machines would get other versions, and `torch>=2.0` the newest build with gigabytes for a GPU.
    """
    loose = [text for text in environment.requirements if not _is_exact(Requirement(text))]
    if not loose or environment.requirements == Pins().dependencies:  # a file without a header
        return
    resolved: dict[str, str] = {}
    with contextlib.suppress(EnvironmentFailed):  # without a network no version is known
        (environment.folder.parent / "pyproject.toml").write_text(FENCE)
        lines = resolve(environment)
        resolved = {canonicalize_name(Requirement(line).name): str(Requirement(line).specifier) for line in lines}
    names = (Requirement(text).name for text in loose)
    pins = [f'"{name}{resolved.get(canonicalize_name(name), "==VERSION")}"' for name in names]
    whole = f"{', '.join(loose)} in {environment.source}: expected exact pins"
    raise EnvironmentFailed(f"{environment.adapter}: {whole}; write {', '.join(pins)}")


def _is_exact(requirement: Requirement) -> bool:
    """Whether it stands for one version, or for a file, a folder or a commit."""
    exact = [one for one in requirement.specifier if one.operator in ("==", "===") and not one.version.endswith("*")]
    return bool(requirement.url or exact)


def _options(environment: Environment, folder: Path) -> list[str]:
    """uv's options for overrides; writes overrides and replaced metadata to files in `folder`, where uv runs."""
    (folder / "overrides.txt").write_text("".join(f"{line}\n" for line in environment.overrides))
    (folder / "pyproject.toml").write_text(METADATA.format(",\n".join(environment.metadata)))
    local = [one.name for one in map(Requirement, (*environment.requirements, *environment.built)) if local_folder(one)]
    fresh = [part for name in local for part in ("--refresh-package", name)]  # uv notices edits of few files only
    return ["--overrides", "overrides.txt"] * bool(environment.overrides) + fresh


@contextlib.contextmanager
def _locked(folder: Path, say: Callable[[str], None]) -> Iterator[int]:
    folder.parent.mkdir(parents=True, exist_ok=True)
    with folder.with_suffix(".lock").open("w") as stream:
        if not lock(stream, wait=False):
            say(f"waiting for another snnbench, which holds environment {folder.name}")
            lock(stream)
        yield stream.fileno()


def _read(folder: Path) -> Installed | None:
    try:
        return Installed(folder, **json.loads((folder / MARKER).read_text()))
    except (OSError, ValueError, TypeError):  # TypeError: the fields of another schema
        return None


def _write(environment: Installed) -> None:
    document = {name: value for name, value in asdict(environment).items() if name != "folder"}
    write_whole(environment.folder / MARKER, (json.dumps(document, indent=2) + "\n").encode())
