"""Loading: an adapter file becomes a module under a private name, in the process that runs it."""

import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

from snnbench.adapter import reading
from snnbench.adapter.declaration import Adapter
from snnbench.adapter.refusal import AdapterError


class Loaded(NamedTuple):
    """An adapter file that was run: what it declares, and the module."""

    declared: Adapter
    module: ModuleType


def read_and_load(path: Path) -> Loaded:
    """Read the declaration of an adapter file, then run the file. Raises AdapterError, and whatever the file raises."""
    return Loaded(reading.read(path), load(path))


def load(path: Path) -> ModuleType:
    """Run the adapter file under a private module name, so that adapters/norse.py cannot shadow `norse`.

    Raises AdapterError if it is not a Python file.
    """
    name = f"_snnbench_adapter_{path.stem.replace('-', '_')}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise AdapterError(f"{path}: not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def neuron_of(module: ModuleType, case: Any, variant: str) -> Any:
    """What the adapter's `neuron` returns. Raises AdapterError if that is no Neuron, for example the library's own."""
    made = module.neuron(case, variant)
    if not (hasattr(made, "stack") and hasattr(made, "alone")):
        expected = "a Neuron of snnbench.backends.torch, .jax or .numpy, which says how to run the library's"
        raise AdapterError(f"neuron(case, variant) returned a {type(made).__name__}; expected {expected}")
    return made


def own_rule(module: ModuleType) -> Callable[[Any, str], Any]:
    """The adapter's `rule` function of a case and a variant; it gives None if the adapter has no such function."""
    rule: Callable[[Any, str], Any] = getattr(module, "rule", lambda case, variant: None)
    return rule
