"""Running uv: its settings, its commands, and its errors in one line with a next step."""

import os
import re
import subprocess
from collections.abc import Callable, Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from types import MappingProxyType

from snnbench.exits import Exit, UserError

NEXT_STEPS = (  # a pattern in uv's output -> the user's next step; the first match counts
    ("No space left", "free some disk space, or set SNNBENCH_HOME to a folder on a larger disk"),
    ("No interpreter found|inspect Python", "install a Python {requires_python}"),
    ("found in the cache", "unset UV_OFFLINE where there is a network, or build the image with {name} in LIBRARIES"),
    ("network was disabled|ailed to fetch|error sending", "check the network, then `{command}`"),
    ("Failed to build", "install what building it needs, or pin a version that comes as a wheel in {source}"),
    ("", "check the pins in {source}, then run `{command}`"),
)


NOT_FOR_UV = (
    "COLUMNS",  # uv would wrap the lines of its errors at it
    "PYTHON*",  # a build would find packages that the environment lacks
    *("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_COMMON_DIR", "GIT_PREFIX", "GIT_NAMESPACE"),  # set by a hook:
    *("GIT_OBJECT_DIRECTORY", "GIT_ALTERNATE_OBJECT_DIRECTORIES", "GIT_QUARANTINE_PATH"),  # of its own repository
)
"""Patterns of environment variables that uv and its builds do not get."""


class EnvironmentFailed(UserError):
    """An environment is unavailable; the message names the adapter, the reason and the next step in one line."""

    code = Exit.UNAVAILABLE


def install(
    arguments: Sequence[str],
    folder: Path,
    say: Callable[[str], None],
    about: Mapping[str, str],
    keep: Sequence[int] = (),
    variables: Mapping[str, str] = MappingProxyType({}),
) -> list[str]:
    """Run uv with these arguments in a folder; pass every line to `say` and return all. Raises EnvironmentFailed.

    `about` has `name`, `source`, `requires_python` and `command` for errors. Descriptors in `keep` stay open in uv:
    if this process is killed, its lock stays held until uv ends. `variables` go to uv beside the user's own.
    """
    try:
        import uv  # here, so that `--env current` needs no uv

        command = [uv.find_uv_bin(), *arguments]
    except (ImportError, FileNotFoundError) as error:
        raise EnvironmentFailed(f"{about['name']}: no uv program; install the package `uv`") from error
    with subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        errors="replace",
        cwd=folder,
        env=settings({**os.environ, **variables}),
        pass_fds=list(keep),
    ) as process:
        lines = []
        try:
            for line in process.stdout or ():
                lines.append(line.rstrip())
                say(lines[-1])
        except BaseException:
            process.kill()
            raise
    if process.returncode != 0:
        raise EnvironmentFailed(_explain(lines, about))
    return lines


def settings(environ: Mapping[str, str]) -> dict[str, str]:
    """The environment variables for uv: those of `environ` that are not in NOT_FOR_UV, and pip's settings if uv's own
    are not set.
    """
    passed = {name: value for name, value in environ.items() if not any(fnmatchcase(name, one) for one in NOT_FOR_UV)}
    variables = {**passed, "PYTHONNOUSERSITE": "1", "NO_COLOR": "1"}
    if not environ.get("UV_TORCH_BACKEND"):  # an image cannot unset it, and uv does not take it empty
        variables.pop("UV_TORCH_BACKEND", None)
    for setting, *names in (
        ("PIP_INDEX_URL", "UV_DEFAULT_INDEX", "UV_INDEX_URL"),
        ("PIP_EXTRA_INDEX_URL", "UV_INDEX", "UV_EXTRA_INDEX_URL"),
        ("PIP_CERT", "SSL_CERT_FILE"),
    ):
        if environ.get(setting) and not any(environ.get(name) for name in names):
            variables[names[0]] = environ[setting]
    # uv separates places by commas, pip by spaces. uv fails at a missing folder, unlike pip, and runs in another one.
    links = re.findall("[^,]+", environ.get("UV_FIND_LINKS", "")) or [
        place for place in environ.get("PIP_FIND_LINKS", "").split() if "://" in place or Path(place).exists()
    ]
    if links:
        variables["UV_FIND_LINKS"] = ",".join(one if "://" in one else os.path.abspath(one) for one in links)
    return variables


def _explain(printed: Sequence[str], about: Mapping[str, str]) -> str:
    """One line on uv's error: its headline, its last cause, and the next step."""
    text = "\n".join(printed).strip() or "uv failed without a word"
    before, *after = re.split(r"^(?:error|hint): ", text, flags=re.MULTILINE)
    lines = [line.strip().removeprefix("cause: ") for line in (after or [before])[0].strip().splitlines()]
    reason = lines[0] if len(lines) == 1 else f"{lines[0]}: {lines[-1]}"
    step = next(step for pattern, step in NEXT_STEPS if re.search(pattern, text))
    return f"{about['name']}: {reason.rstrip('.')}; {step.format_map(about)}"
