"""An adapter: one file that says how to build the harness's network in one library.

The harness *reads* an adapter file (its header, docstring and constants) without running it, and *runs* it only in a
worker process, in the library's own environment. What a file holds:

    # /// script ... # ///      PEP 723 header: requires-python and dependencies with exact pins; the first dependency
                                is the library, whose version goes into every record
    BACKEND = "torch"           "torch", "jax" or "numpy"; "own" for a class `Backend` in the file itself
    ORDER = "TBN"               the order of the axes of the library's input and output; "TBN" if left out
    VARIANTS = {"name": "what it is"}       ways of running it; the first is the default
    LATENCY = 0                 steps by which the output is late; the harness allows for it outside the timed region
    DEVIATION = "..."           what it does differently, where it cannot be exact; left out otherwise
    def build(case, weights, variant): ...  returns the backend's network; raises Unsupported(reason) where it must

BACKEND, ORDER, LATENCY and DEVIATION may also be a dictionary by variant. All constants are literals.
"""

import ast
import hashlib
import importlib.util
import re
import sys
import tomllib
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

HEADER = re.compile(r"(?m)^# /// script$\s(?P<content>(^#(| .*)$\s)+)^# ///$")  # the pattern of PEP 723


class Unsupported(Exception):
    """Raised by an adapter for a case that its library cannot express; the message is the reason."""


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


class Incorrect(Exception):
    """Raised where a network's answer cannot even be compared, for instance when spikes carry no gradient."""


class AdapterError(ValueError):
    """The adapter file itself is not usable; the message says where and why."""


@dataclass(frozen=True, slots=True)
class Adapter:
    """What a file says of itself. `dependencies` and `overrides` are requirement strings with exact pins."""

    name: str
    path: Path
    about: str
    requires_python: str
    dependencies: tuple[str, ...]
    overrides: tuple[str, ...]
    cuda: tuple[str, ...]
    modules: tuple[str, ...]
    variants: dict[str, str]
    backends: dict[str, str]
    orders: dict[str, str]
    latencies: dict[str, int]
    deviations: dict[str, str] = field(default_factory=dict)

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

    @property
    def distribution(self) -> str:
        """The distribution whose version is the library's version."""
        return re.split(r"[=<>!~\[; ]", self.dependencies[0])[0]


CONSTANTS: dict[str, tuple[Any, str, Callable[[Any], bool]]] = {
    "BACKEND": (None, '"torch", "jax", "numpy" or "own"', lambda value: value in ("torch", "jax", "numpy", "own")),
    "ORDER": ("TBN", 'the letters of "TBN"', lambda value: isinstance(value, str) and sorted(value) == sorted("TBN")),
    "LATENCY": (0, "a number of steps", lambda value: isinstance(value, int) and value >= 0),
    "DEVIATION": ({}, "a sentence", lambda value: isinstance(value, str) and value != ""),
}
"""What a constant is if left out, and what it must be, in words and as a test."""
ONLY_VARIANT = "default"
"""What the variant of an adapter without VARIANTS is called, and nobody needs to say."""


def label(library: str, variant: str) -> str:
    """`library/variant`, or the library alone where there is only one way of running it."""
    return library if variant == ONLY_VARIANT else f"{library}/{variant}"


def read(path: Path) -> Adapter:
    """What the adapter file at `path` says of itself, without running it. Raises AdapterError."""
    try:
        text = path.read_text(encoding="utf-8")
        tree = ast.parse(text)
    except (OSError, SyntaxError, ValueError) as error:  # ValueError: no text, or null bytes in it
        raise AdapterError(f"{path}: {error}") from error
    header = _header(path, text)
    constants = _constants(tree)
    if not any(isinstance(node, ast.FunctionDef) and node.name == "build" for node in tree.body):
        raise AdapterError(f"{path}: no function build(case, weights, variant)")
    variants = constants.get("VARIANTS") or {ONLY_VARIANT: (ast.get_docstring(tree) or path.stem).splitlines()[0]}
    if not (isinstance(variants, dict) and all(isinstance(word, str) for pair in variants.items() for word in pair)):
        raise AdapterError(f'{path}: VARIANTS: expected {{"name": "what it is"}}')
    if "BACKEND" not in constants:
        raise AdapterError(f'{path}: no BACKEND = "torch", "jax", "numpy" or "own"')
    given = {name: _by_variant(path, name, constants.get(name, CONSTANTS[name][0]), variants) for name in CONSTANTS}
    tool = header.get("tool", {})
    return Adapter(
        name=path.stem.replace("_", "-"),
        path=path,
        about=(ast.get_docstring(tree) or "").split("\n\n")[0].replace("\n", " "),
        requires_python=header.get("requires-python", ">=3.11"),
        dependencies=tuple(header.get("dependencies", ())) or ("numpy",),
        overrides=tuple(tool.get("uv", {}).get("override-dependencies", ())),
        cuda=tuple(tool.get("snnbench", {}).get("cuda", ())),
        modules=tuple(tool.get("snnbench", {}).get("modules", ())),
        variants=variants,
        backends=given["BACKEND"],
        orders=given["ORDER"],
        latencies=given["LATENCY"],
        deviations=given["DEVIATION"],
    )


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


def builder(module: ModuleType) -> Callable[[Any, Any, str], Any]:
    """The adapter's `build` function."""
    build: Callable[[Any, Any, str], Any] = module.build
    return build


def _header(path: Path, text: str) -> dict[str, Any]:
    match = HEADER.search(text)
    if match is None:
        return {}
    lines = match.group("content").splitlines(keepends=True)
    try:
        return tomllib.loads("".join(line[2:] if line.startswith("# ") else line[1:] for line in lines))
    except tomllib.TOMLDecodeError as error:
        raise AdapterError(f"{path}: script header: {error}") from error


def _constants(tree: ast.Module) -> dict[str, Any]:
    found = {}
    for node in tree.body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and node.targets[0].id.isupper():
            try:
                found[node.targets[0].id] = ast.literal_eval(node.value)
            except (ValueError, TypeError):
                continue  # a computed constant is the adapter's own business
    return found


def _by_variant(path: Path, name: str, value: Any, variants: dict[str, str]) -> dict[str, Any]:
    """The value of a constant for each variant; only DEVIATION may leave some out."""
    values = value if isinstance(value, dict) else dict.fromkeys(variants, value)
    for variant in sorted(values.keys() ^ variants.keys()):
        if variant in values or name != "DEVIATION":
            raise AdapterError(f"{path}: {name}: {variant!r} should stand in both VARIANTS and {name}, or in neither")
    _, expected, fits = CONSTANTS[name]
    for one in values.values():
        if not fits(one):
            raise AdapterError(f"{path}: {name}: {one!r} should be {expected}")
    return values
