"""A detector of operations in a library's pass that a CUDA graph cannot replay.

Needs no GPU; runs in the library's own environment.

    python capture_watch.py passes ADAPTER VARIANT          a report of each phase, as JSON
    python capture_watch.py devices ADAPTER VARIANT...      where each variant's spikes are if its weights are on `meta`

A graph replays kernels at the addresses of its capture, without Python and without the host. So a pass must not use
memory of an earlier pass that it then frees. On the CPU a dispatch mode sees the storages from outside of the pass, and
weak references tell which of these storages are gone at its end. A pass also must not copy between host and device, or
wait for a number from the device. The device `meta` takes the place of a GPU, so every CPU tensor is on the host.
"""

import json
import sys
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path
from typing import Any

import torch
from torch.multiprocessing.reductions import StorageWeakRef
from torch.overrides import TorchFunctionMode, resolve_name
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from snnbench.adapter.loading import load
from snnbench.adapter.reading import read
from snnbench.adapter.refusal import Unsupported
from snnbench.backends.torch.graph import WARM_UPS, existing
from snnbench.backends.torch.session import Session
from snnbench.cases.case import PROFILES
from snnbench.workloads.linear_lif import Case, Problem, builder

WAITS = ("_local_scalar_dense", "nonzero", "masked_select", "_unique2", "unique_dim", "unique_consecutive", "equal")
"""Operators that make the host wait for their result or its shape."""
FROM_NUMBERS = (torch.tensor, torch.as_tensor, torch.asarray, torch.from_numpy)
"""Functions that make a tensor from data on the host."""
SHAPES_ONLY = (
    "empty_like",
    "zeros_like",
    "ones_like",
    "full_like",
    "rand_like",
    "randn_like",
    "new_empty",
    "new_zeros",
)
"""Operators that read a tensor's shape and not its memory."""


def tensors(tree: Any) -> Iterator[torch.Tensor]:
    """The tensors in nested arguments or results."""
    return (leaf for leaf in tree_leaves(tree) if isinstance(leaf, torch.Tensor))


class Lifetimes(TorchDispatchMode):
    """Watches for storages that a pass uses but did not make."""

    def __init__(self) -> None:
        super().__init__()
        self.made: dict[int, StorageWeakRef] = {}
        self.outside: dict[int, tuple[StorageWeakRef, str]] = {}

    def __torch_dispatch__(self, operator: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = operator.overloadpacket.__name__
        for tensor in tensors((args, kwargs)):
            storage = tensor.untyped_storage()
            key = storage._cdata
            if name == "lift_fresh":  # announces a tensor that torch.tensor has just made
                self.made[key] = StorageWeakRef(storage)
            elif name not in SHAPES_ONLY and key not in self.made and key not in self.outside:
                self.outside[key] = StorageWeakRef(storage), f"{operator} of {tuple(tensor.shape)}"
        result = operator(*args, **(kwargs or {}))
        for tensor in tensors(result):
            storage = tensor.untyped_storage()
            if storage._cdata not in self.outside:
                self.made[storage._cdata] = StorageWeakRef(storage)
        return result

    def freed(self) -> list[str]:
        """Uses of storages that are gone. A weak reference keeps the place of a storage from being taken again."""
        return [use for reference, use in self.outside.values() if reference.expired()]


class HostOperators(TorchDispatchMode):
    """Watches for operators that read from the host, write to it, or make it wait."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[str] = []

    def __torch_dispatch__(self, operator: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        inputs = {tensor.device.type for tensor in tensors((args, kwargs))}
        name = operator.overloadpacket.__name__
        masks = name in ("index", "index_put", "index_put_") and any(
            tensor.dtype in (torch.bool, torch.uint8) for tensor in tensors(args[1])
        )
        if "meta" in inputs and (name in WAITS or masks):
            self.seen.append(f"{operator} waits")
        wanted = (kwargs or {}).get("device")
        devices = inputs | ({wanted.type} if wanted else set())
        if name in ("_to_copy", "copy_") and len(devices) > 1:
            self.seen.append(f"{operator} copies between host and device")
        return operator(*args, **(kwargs or {}))


class HostFunctions(TorchFunctionMode):
    """Watches for calls that make a device tensor from numbers on the host; no operator below the call shows it."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[str] = []

    def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = function(*args, **(kwargs or {}))
        host = not any(tensor.device.type == "meta" for tensor in tensors(args))
        if function in FROM_NUMBERS and host and any(tensor.device.type == "meta" for tensor in tensors(result)):
            self.seen.append(f"{resolve_name(function)} copies from the host")
        return result


def session(path: Path, name: str, device: str) -> Session:
    """A session of the variant, in the first profile and surrogate that it accepts."""
    variant, build = read(path).variants[name], builder(load(path))
    refusals = []
    for surrogate, profile in product(("fast_sigmoid", "rectangle", "one_sided"), variant.exact or PROFILES):
        reset, detach_reset = PROFILES[profile]
        case = Case(
            neurons=16,
            batch=3,
            time_steps=5,
            layers=1,
            device=device,
            dtype="float32",
            precision="ieee",
            threads=1,
            beta=0.9,
            threshold=1.0,
            reset=reset,
            detach_reset=detach_reset,
            surrogate=surrogate,
            slope=1.0,
            input_rate=0.1,
            input_gradient=True,
            seed=1,
        )
        try:
            return Session(build, variant, Problem(case), torch.device(device))
        except Unsupported as refusal:
            refusals.append(str(refusal))
    raise Unsupported("; ".join(refusals))


def phases(made: Session) -> Iterator[tuple[str, Callable[[], Any], Callable[[], Any]]]:
    """Name, warm-up and pass of each phase that is captured as a graph."""
    yield "inference", made.inference, made.inference
    yield "forward", made.train, made.forward
    spikes = made.forward()
    yield "backward", lambda: made.gradients(spikes, again=True), lambda: made.gradients(spikes, again=True)
    yield "train", made.train, made.train


def freed(made: Session, hold: bool) -> dict[str, list[str]]:
    """By phase, the uses of memory that a pass frees but a replay would need. `hold` keeps memory as Captured does."""
    touched = {}
    for phase, warm_up, run in phases(made):
        for _ in range(WARM_UPS):
            warm_up()
        held = existing(made.device) if hold else []
        with Lifetimes() as lifetimes:
            outputs = run()
        touched[phase] = lifetimes.freed()
        del outputs, held
    return touched


def host(made: Session) -> dict[str, list[str]]:
    """By phase, a pass's operations with the host."""
    copies = {}
    for phase, _, run in phases(made):
        with HostFunctions() as functions, HostOperators() as operators:
            run()
        copies[phase] = functions.seen + operators.seen
    return copies


def passes(path: Path, name: str) -> dict[str, dict[str, list[str]]]:
    """The memory freed, with and without a hold, and the operations that need the host."""
    return {
        "freed": freed(session(path, name, "cpu"), hold=False),
        "freed though held": freed(session(path, name, "cpu"), hold=True),
        "host": host(session(path, name, "meta")),
    }


def devices(path: Path, *names: str) -> dict[str, str]:
    """By variant, the device of its spikes, built and run with weights and input on `meta`."""
    return {name: session(path, name, "meta").inference().device.type for name in names}


if __name__ == "__main__":
    command = {"passes": passes, "devices": devices}[sys.argv[1]]
    print(json.dumps(command(Path(sys.argv[2]), *sys.argv[3:])))
