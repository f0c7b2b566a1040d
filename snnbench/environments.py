"""Managed environments: one per distinct set of pins, made by uv on first need and reused until the pins change."""

import contextlib
import fcntl
import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path

import uv
from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.utils import canonicalize_name

from snnbench.adapter import Adapter
from snnbench.case import digest

SCHEMA = 1  # of what a key stands for and of the marker; 1: the first
MARKER = "snnbench.json"  # written last: a folder without it is half made, and will be made anew
FENCE = "# Ends uv's search for a project here: the overrides of one that is around would change the pins.\n[tool.uv]\n"
LIST_VERSIONS = """import importlib.metadata, json
print(json.dumps([(one.metadata["Name"], one.version) for one in importlib.metadata.distributions()]))"""
NEXT_STEPS = (  # a pattern in what uv said -> what the user can do; the first that fits
    ("No space left", "free some disk space, or set SNNBENCH_HOME to a folder on a larger disk"),
    ("No interpreter found|inspect Python", "install a Python {0.requires_python}"),
    ("network was disabled|ailed to fetch|error sending", "check the network, then `snnbench env sync {0.adapter}`"),
    ("Failed to build", "install what building it needs, or pin a version that comes as a wheel in {0.source}"),
    ("", "check the pins in {0.source}, then run `snnbench env sync {0.adapter}`"),
)


class EnvironmentFailed(RuntimeError):
    """An environment is not to be had; the message says in one line for whom, why, and what to do next."""


@dataclass(frozen=True, slots=True)
class Environment:
    """Where an adapter's environment is or will be. `interpreter` is what uv is asked for: a path or a specifier."""

    adapter: str
    source: Path
    key: str
    folder: Path
    python: Path
    interpreter: str
    requires_python: str
    requirements: tuple[str, ...]
    overrides: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Installed:
    """What a folder under `home()/envs` says of itself in its marker. One without a marker has only `folder`."""

    folder: Path
    adapters: Sequence[str] = ()
    requires_python: str = ""
    requirements: Sequence[str] = ()
    overrides: Sequence[str] = ()
    versions: Mapping[str, str] = field(default_factory=dict)
    created: str = ""

    @property
    def size_bytes(self) -> int:
        """What the folder occupies on disk, though uv's cache may share it. Takes a while: every file is looked at."""
        return sum(path.lstat().st_blocks * 512 for path in self.folder.rglob("*"))


def home() -> Path:
    """The folder for what snnbench keeps between runs."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return Path(os.environ.get("SNNBENCH_HOME") or cache / "snnbench").expanduser().absolute()


def current() -> Path:
    """The interpreter that runs this, for `--env current`."""
    return Path(sys.executable)


def plan(adapter: Adapter, cuda: bool) -> Environment:
    """The environment that an adapter's header asks for; nothing is made. Raises EnvironmentFailed."""
    try:
        specifier = SpecifierSet(adapter.requires_python)
        asked = (adapter.dependencies + (adapter.cuda if cuda else ()), adapter.overrides)
        requirements, overrides = (tuple(sorted({str(Requirement(one)) for one in texts})) for texts in asked)
    except (InvalidSpecifier, InvalidRequirement) as error:
        raise EnvironmentFailed(f"{adapter.path}: script header: {str(error).splitlines()[0]}") from error
    fits = specifier.contains(".".join(map(str, sys.version_info[:3])), prereleases=True)
    interpreter = sys.executable if fits else str(specifier)
    abi = (sysconfig.get_config_var("SOABI") or sys.implementation.cache_tag) if fits else sysconfig.get_platform()
    pins = (str(specifier), requirements, overrides)
    key = digest([SCHEMA, pins, os.environ.get("UV_TORCH_BACKEND", ""), abi])
    folder = home() / "envs" / key
    return Environment(adapter.name, adapter.path, key, folder, folder / "bin" / "python", interpreter, *pins)


def is_ready(environment: Environment) -> bool:
    """Whether it was made to the end and its interpreter is still there: it works offline from here on."""
    return _read(environment.folder) is not None and os.access(environment.python, os.X_OK)


def sync(environment: Environment, say: Callable[[str], None]) -> Environment:
    """Make it if it is missing, passing uv's progress on, line by line, to `say`. Raises EnvironmentFailed."""
    found = _read(environment.folder)
    if found and environment.adapter in found.adapters and is_ready(environment):
        return environment
    try:
        with _locked(environment.folder, say) as lock:
            if not is_ready(environment):
                _make(environment, lock, say)
            elif found := _read(environment.folder):
                _write(replace(found, adapters=sorted({*found.adapters, environment.adapter})))
    except BrokenPipeError:  # of whoever listens to `say`
        raise
    except OSError as error:
        if not is_ready(environment):  # one made by another user, or in an image, is usable without our name in it
            reason = f"{environment.adapter}: {error.filename or environment.folder}: {error.strerror}"
            raise EnvironmentFailed(f"{reason}; set SNNBENCH_HOME to a folder that can be written") from error
    return environment


def versions(python: Path) -> dict[str, str]:
    """Canonical distribution name -> version: as recorded for a managed environment, else asked of the interpreter."""
    if record := _read(python.parent.parent):
        return dict(record.versions)
    safe = os.environ | {"PYTHONSAFEPATH": "1"}  # keeps the working directory's own packages out of the answer
    try:
        answer = subprocess.check_output([python, "-c", LIST_VERSIONS], env=safe, stderr=subprocess.PIPE, text=True)
    except (OSError, subprocess.SubprocessError) as error:
        said = (str(getattr(error, "stderr", None) or "").strip() or str(error)).splitlines()[-1]
        raise EnvironmentFailed(f"{python}: {said}; expected a Python 3.8 or later that starts") from error
    found_first = reversed(json.loads(answer.splitlines()[-1]))  # on the path; of a dictionary the last stays
    return dict(sorted((canonicalize_name(name), version) for name, version in dict(found_first).items() if name))


def installed() -> list[Installed]:
    """Every environment under `home()`, the oldest first, after the half-made ones."""
    folders = [folder for folder in (home() / "envs").glob("*") if folder.is_dir()]
    return sorted((_read(folder) or Installed(folder) for folder in folders), key=lambda one: (one.created, one.folder))


def remove(environment: Installed, say: Callable[[str], None]) -> None:
    """Delete an environment; one that is being made is waited for first."""
    with _locked(environment.folder, say):
        (environment.folder / MARKER).unlink(missing_ok=True)  # first: what an interruption leaves is half made
        shutil.rmtree(environment.folder, ignore_errors=True)


def uv_settings(environ: Mapping[str, str]) -> dict[str, str]:
    """The environment variables for uv: all of `environ`, and pip's settings where uv's own are not set."""
    settings = {**environ, "NO_COLOR": "1"}
    for setting, *names in (
        ("PIP_INDEX_URL", "UV_DEFAULT_INDEX", "UV_INDEX_URL"),
        ("PIP_EXTRA_INDEX_URL", "UV_INDEX", "UV_EXTRA_INDEX_URL"),
        ("PIP_CERT", "SSL_CERT_FILE"),
    ):
        if environ.get(setting) and not any(environ.get(name) for name in names):
            settings[names[0]] = environ[setting]
    # uv parts places by commas where pip has spaces, stops at a missing folder where pip goes on, and runs elsewhere.
    places = re.findall("[^,]+", environ.get("UV_FIND_LINKS", "")) or [
        place for place in environ.get("PIP_FIND_LINKS", "").split() if "://" in place or Path(place).exists()
    ]
    if places:
        settings["UV_FIND_LINKS"] = ",".join(one if "://" in one else os.path.abspath(one) for one in places)
    return settings


def _make(environment: Environment, lock: int, say: Callable[[str], None]) -> None:
    folder = environment.folder
    shutil.rmtree(folder, ignore_errors=True)
    (folder.parent / "pyproject.toml").write_text(FENCE)
    say(f"{environment.adapter}: making environment {environment.key} ({', '.join(environment.requirements)})")
    _uv(environment, ["venv", "--quiet", "--no-project", "--python", environment.interpreter, str(folder)], lock, say)
    overrides = folder / "overrides.txt"
    overrides.write_text("".join(f"{line}\n" for line in environment.overrides))
    options = ["--python", str(environment.python)] + ["--overrides", str(overrides)] * bool(environment.overrides)
    _uv(environment, ["pip", "install", "--compile-bytecode", *options, *environment.requirements], lock, say)
    asked = (environment.requires_python, environment.requirements, environment.overrides)
    now = datetime.now(UTC).isoformat(timespec="seconds")
    _write(Installed(folder, [environment.adapter], *asked, versions(environment.python), now))


def _uv(environment: Environment, arguments: Sequence[str], lock: int, say: Callable[[str], None]) -> None:
    try:
        command = [uv.find_uv_bin(), *arguments]
    except FileNotFoundError as error:
        raise EnvironmentFailed(f"{environment.adapter}: no uv program; install the package `uv`") from error
    with subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        errors="replace",
        cwd=environment.folder.parent,
        env=uv_settings(os.environ),
        pass_fds=[lock],  # if this process is killed, uv still holds the lock until it too has ended
    ) as process:
        said = []
        try:
            for line in process.stdout or ():
                said.append(line.rstrip())
                say(said[-1])
        except BaseException:
            process.kill()
            raise
    if process.returncode != 0:
        raise EnvironmentFailed(_explain(environment, said))


def _explain(environment: Environment, said: Sequence[str]) -> str:
    """One line from uv's error: its headline, its last cause, and the next step."""
    text = "\n".join(said).strip() or "uv failed without a word"
    before, *after = re.split(r"^(?:error|hint): ", text, flags=re.MULTILINE)
    lines = [line.strip().removeprefix("cause: ") for line in (after or [before])[0].strip().splitlines()]
    reason = lines[0] if len(lines) == 1 else f"{lines[0]}: {lines[-1]}"
    step = next(step for pattern, step in NEXT_STEPS if re.search(pattern, text))
    return f"{environment.adapter}: {reason.rstrip('.')}; {step.format(environment)}"


@contextlib.contextmanager
def _locked(folder: Path, say: Callable[[str], None]) -> Iterator[int]:
    folder.parent.mkdir(parents=True, exist_ok=True)
    with folder.with_suffix(".lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say(f"waiting for another snnbench, which holds environment {folder.name}")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield lock.fileno()


def _read(folder: Path) -> Installed | None:
    try:
        return Installed(folder, **json.loads((folder / MARKER).read_text()))
    except (OSError, ValueError, TypeError):  # TypeError: the fields of another schema
        return None


def _write(environment: Installed) -> None:
    draft = environment.folder / f"{MARKER}.draft"
    said = {name: value for name, value in asdict(environment).items() if name != "folder"}
    draft.write_text(json.dumps(said, indent=2) + "\n")
    draft.replace(environment.folder / MARKER)
