"""The declaration of an adapter file, as plain data that needs no library."""

import hashlib
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import snnbench
from snnbench.adapter.pins import Pins

WAYS = {
    "compile": "the whole network through torch.compile, the loop over time unrolled",
    "cuda-graph": "the whole pass captured in a CUDA graph, and replayed",
    "amp": "weights in float32, products under autocast in the case's 16-bit format",
}
"""Ways of running a PyTorch network that the harness adds without the library. An adapter names some of them. Each
becomes a variant: the default variant, or the one that the adapter names, run that way."""
ONLY_VARIANT = "default"
"""The variant of an adapter without VARIANTS; its name is never shown."""
NAME = r"[A-Za-z0-9][A-Za-z0-9_.+-]{0,99}"
"""The pattern of names in a recording: of libraries and variants, and of all that a worker names."""
PACKAGE = Path(snnbench.__file__).parent


@dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    """A variant of a library, as its file declares it. `built_as` is the variant that `build` gets.

    `synaptic` are the profiles in which its neurons may have a synaptic current, the case's alpha, and `recurrent`
    those in which a layer may get its own spikes back. `trained` are the constants of its neurons that it trains. With
    `own_decays` each neuron may have a decay of its own, and with `chunks` its neurons take and give a state, so that a
    sequence may come in chunks. `way` is the harness's own way of running the network (WAYS), or empty. A variant that
    `compiles` takes far longer than others before its first pass.
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
    compiles: bool = False
    synaptic: tuple[str, ...] = ()
    recurrent: tuple[str, ...] = ()
    trained: tuple[str, ...] = ()
    own_decays: bool = False
    chunks: bool = False
    way: str = ""

    def refusal(self, case: Any) -> str:
        """Why its file excludes it from a case; empty if it does not."""
        device = case.device.split(":")[0]
        if device not in self.devices:
            return f"runs on {' and '.join(self.devices)} only"
        if self.exact and case.profile not in self.exact:
            return self.resets or f"is the reference in {', '.join(self.exact)} only"
        if case.alpha and case.profile not in self.synaptic:
            only = f"has it in {', '.join(self.synaptic)} only" if self.synaptic else "has none"
            return f"a synaptic current (alpha): this adapter {only}"
        if case.is_recurrent and case.profile not in self.recurrent:
            only = f"has one in {', '.join(self.recurrent)} only" if self.recurrent else "has none"
            return f"a recurrent layer: this adapter {only}"
        if untrained := [name for name in case.trained_constants if name not in self.trained]:
            only = f"trains its {' and '.join(self.trained)} only" if self.trained else "trains no constant"
            return f"a trained {' and '.join(untrained)}: this adapter {only}"
        if case.has_own_decays and not self.own_decays:
            return "a decay for each neuron: this adapter has one for a layer"
        if case.chunk_steps and not self.chunks:
            return "a sequence in chunks: this adapter carries no state from one call to the next"
        return ""

    def run(self, way: str) -> "Variant":
        """This variant, run in a way of the harness."""
        devices = ("cuda",) if way == "cuda-graph" else self.devices
        compiles = self.compiles or way == "compile"
        return replace(self, about=f"{self.about}: {WAYS[way]}", way=way, devices=devices, compiles=compiles)


@dataclass(frozen=True, slots=True)
class Adapter:
    """The declaration of one adapter file.

    `exchanges` says which of import and export of NIR graphs the file has, by its functions from_nir and to_nir; `nir`
    are the packages that they need beside those of a variant.
    """

    name: str
    path: Path
    about: str
    modules: tuple[str, ...]
    variants: dict[str, Variant]
    exchanges: tuple[str, ...] = ()
    nir: tuple[str, ...] = ()

    @property
    def default(self) -> str:
        """The variant that the bare library name stands for."""
        return next(iter(self.variants))

    @property
    def digest(self) -> str:
        """A hash, 16 hexadecimal digits, of the content of the file and of the modules it names."""
        folders = [PACKAGE / name for name in self.modules]
        files = [self.path, *(file for folder in folders for file in sorted(folder.glob("*.*")) if file.is_file())]
        return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()[:16]
