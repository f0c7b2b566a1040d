"""An adapter: one file that says how to build the harness's network in one library.

The harness *reads* an adapter file without running it (declaration.py says what it holds), and *runs* it only in a
worker process, in the library's own environment. Adapters import `require`, `Unsupported` and `Unavailable` from here.
"""

import hashlib
import importlib.util
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType
from typing import Any

from snnbench.pins import Pins
from snnbench.refusal import Unavailable, Unsupported
from snnbench.ways import WAYS

__all__ = [
    "ONLY_VARIANT",
    "Adapter",
    "AdapterError",
    "Incorrect",
    "Unavailable",
    "Unsupported",
    "Variant",
    "builder",
    "label",
    "load",
    "own_rule",
    "require",
]


class Incorrect(Exception):
    """Raised where a network's answer cannot even be compared, for instance when spikes carry no gradient."""


class AdapterError(ValueError):
    """The adapter file itself is not usable; the message says where and why."""


def require(case: Any, because: str, **allowed: Any) -> None:
    """Raise Unsupported where a field of `case` is none of its allowed values (one, or a tuple of them).

    `profile` is a field here too: require(case, "LIFNeuronTorch subtracts", profile=("subtract",)).
    """
    for name, values in allowed.items():
        value = getattr(case, name)
        choices = values if isinstance(values, tuple) else (values,)
        if value not in choices:
            # Every table has the profile beside the reason, and lists a reason once for several profiles.
            raise Unsupported(because if name == "profile" else f"{because} (asked for {name} {value})")


@dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    """A way of running a library, as its file declares it. `built_as` is the variant that `build` is asked for.

    `way` is the harness's own way of running what was built (ways.py), or nothing.
    """

    about: str
    built_as: str
    pins: Pins
    backend: str
    order: str = "TBN"
    latency: int = 0
    devices: tuple[str, ...] = ("cpu", "cuda")
    exact: tuple[str, ...] = ()
    resets: str | None = None
    deviation: str | None = None
    inference_only: str | None = None
    provider: tuple[str, ...] | None = None
    needs: str | None = None
    way: str = ""

    def refusal(self, case: Any) -> str:
        """Why it takes no part in a case, as far as its file says; nothing where it may."""
        device = case.device.split(":")[0]
        if device not in self.devices:
            return f"runs on {' and '.join(self.devices)} only"
        if self.exact and case.profile not in self.exact:
            return self.resets or f"is the reference in {', '.join(self.exact)} only"
        return ""

    def run(self, way: str) -> "Variant":
        """The same, run in a way of the harness."""
        devices = ("cuda",) if way == "cuda-graph" else self.devices
        return replace(self, about=f"{self.about}: {WAYS[way]}", way=way, devices=devices)


@dataclass(frozen=True, slots=True)
class Adapter:
    """What a file says of itself."""

    name: str
    path: Path
    about: str
    modules: tuple[str, ...]
    variants: dict[str, Variant]

    @property
    def default(self) -> str:
        """The variant that the bare library name stands for."""
        return next(iter(self.variants))

    @property
    def digest(self) -> str:
        """16 hexadecimal digits that stand for the content of the file and of the modules it names."""
        folders = [Path(__file__).parent / name for name in self.modules]
        files = [self.path, *(file for folder in folders for file in sorted(folder.glob("*.*")) if file.is_file())]
        return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()[:16]


ONLY_VARIANT = "default"
"""What the variant of an adapter without VARIANTS is called, and nobody needs to say."""


def label(library: str, variant: str) -> str:
    """`library/variant`, or the library alone where there is only one way of running it."""
    return library if variant == ONLY_VARIANT else f"{library}/{variant}"


def load(path: Path) -> ModuleType:
    """Run the adapter file under a private module name, so that adapters/norse.py cannot shadow `norse`."""
    name = f"_snnbench_adapter_{path.stem.replace('-', '_')}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise AdapterError(f"{path}: not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def own_rule(module: ModuleType) -> Callable[[Any, str], Any]:
    """The adapter's `rule` function, of a case and a variant; one that declares no rule of its own gives None."""
    rule: Callable[[Any, str], Any] = getattr(module, "rule", lambda case, variant: None)
    return rule


def builder(module: ModuleType) -> Callable[[Any, Any, str], Any]:
    """The adapter's `build` function."""
    build: Callable[[Any, Any, str], Any] = module.build
    return build
