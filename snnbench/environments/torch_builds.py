"""The builds of PyTorch in an environment: small ones where no GPU is seen, unless the user names others."""

import os
import sys
import tempfile
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path

from packaging.requirements import Requirement

from snnbench.environments.uv_program import EnvironmentFailed, install, settings

VARIABLE = "UV_TORCH_BACKEND"
SMALL = "cpu"
"""uv's name for builds without CUDA, which PyTorch's own index has. Those of the ordinary index take 5 GB."""
WHY = f"; no GPU is seen: small builds for CPUs, {VARIABLE} names others"


def planned(requirements: Iterable[str], cuda: bool) -> str:
    """uv's name for the builds of these requirements; "" for those of the ordinary index. Nothing is looked up."""
    if VARIABLE in os.environ or cuda or _are_linked():
        return os.environ.get(VARIABLE, "")
    return SMALL * any(Requirement(text).name == "torch" for text in requirements)


def variables(builds: str, say: Callable[[str], None]) -> dict[str, str]:
    """Variables for uv, beside the user's own. If PyTorch's index is out of reach, they name no builds."""
    if builds != SMALL or VARIABLE in os.environ:
        return {}
    is_first = not _is_reached.cache_info().currsize
    if _is_reached():
        return {VARIABLE: SMALL}
    if is_first:
        say("PyTorch's own index is out of reach: PyTorch comes in the builds of the ordinary index")
    return {}


def _are_linked() -> bool:
    """Whether a folder of `UV_FIND_LINKS` has PyTorch: then uv needs no index for it."""
    places = settings(os.environ).get("UV_FIND_LINKS", "").split(",")
    return any(any(Path(place).glob("torch-*.whl")) for place in places if place and "://" not in place)


@cache
def _is_reached() -> bool:
    """Whether uv finds PyTorch in PyTorch's index: asked once, and without uv's retries of many seconds."""
    with tempfile.TemporaryDirectory() as scratch:
        (Path(scratch) / "asked.txt").write_text("torch\n")
        asking = ["pip", "compile", "--quiet", "--no-deps", "--python", sys.executable, "asked.txt"]
        about = {"name": "torch", "source": "", "requires_python": "", "command": ""}
        once = {VARIABLE: SMALL, "UV_HTTP_RETRIES": "0"}
        try:
            install(asking, Path(scratch), lambda line: None, about, variables=once)
        except EnvironmentFailed:
            return False
    return True
