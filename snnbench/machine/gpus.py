"""Cards: the GPUs that cells may run on, by UUID, and other processes on them.

A worker sees only one card, through CUDA_VISIBLE_DEVICES. Cards that CUDA_VISIBLE_DEVICES hides from snnbench stay
hidden.
"""

import importlib
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from snnbench.digest import hashed
from snnbench.exits import Exit, UserError


class UnknownCard(UserError):
    """A card that is not here; the message lists the ones that are."""

    code = Exit.USAGE


@dataclass(frozen=True, slots=True)
class Card:
    """A card: its name for CUDA_VISIBLE_DEVICES, its number in the driver's list, its model and its memory.

    If it is `exclusive`, one process may use it at a time.
    """

    uuid: str
    index: int | None
    model: str = ""
    memory_bytes: int = 0
    exclusive: bool = False

    @property
    def name(self) -> str:
        """The card's name in records, hashed: recordings are public."""
        return hashed(self.uuid)


def visible(environ: Mapping[str, str] = os.environ, nvml: Any = None) -> list[Card]:
    """The usable cards, in the order of CUDA_VISIBLE_DEVICES, up to its first invalid entry.

    Its numbers count the cards that NVML opens, as CUDA counts them; `Card.index` is NVML's own number.
    Raises UnknownCard if numbers are ambiguous: CUDA orders cards of different models by speed.
    """
    nvml = nvml or nvidia_driver()
    if nvml is None:
        return []
    there = [_opened(nvml, index, handle) for index, handle in handles(nvml)]
    listed = environ.get("CUDA_VISIBLE_DEVICES")
    if listed is None:
        return there
    numbered = any(part.strip().isdecimal() for part in listed.split(","))
    if numbered and len({card.model for card in there}) > 1 and environ.get("CUDA_DEVICE_ORDER") != "PCI_BUS_ID":
        raise UnknownCard("CUDA_VISIBLE_DEVICES: numbers of unlike cards; give UUIDs, or CUDA_DEVICE_ORDER=PCI_BUS_ID")
    cards: list[Card] = []
    for name in (part.strip() for part in listed.split(",")):
        card = _card(name, there)
        if card is None:
            break
        cards.append(card)
    return cards


def chosen(text: str, cards: Sequence[Card]) -> list[Card]:
    """The cards of `--devices`: numbers among the visible cards, or beginnings of UUIDs. Raises UnknownCard."""
    picked: dict[Card, None] = {}
    for name in (part.strip() for part in text.split(",")):
        if re.fullmatch("[0-9]{1,4}", name) and int(name) < len(cards):
            fitting = [cards[int(name)]]
        else:
            fitting = [card for card in cards if len(name) > 4 and card.uuid.startswith(name)]
        if len(fitting) != 1:
            known = ", ".join(f"{number} ({card.uuid})" for number, card in enumerate(cards)) or "none"
            raise UnknownCard(f"--devices: {name!r} is not a card of this machine (known: {known})")
        picked[fitting[0]] = None
    return list(picked)


class Watch:
    """Watches a card for other processes.

    At the start and at `others`, as many of our workers are there as are `waiting`, and no further one.
    """

    def __init__(self, card: Card, nvml: Any = None, waiting: int = 0) -> None:
        self._nvml, self._seen_us, self._waiting = nvml or nvidia_driver(), 0, waiting
        self._handle = dict(handles(self._nvml)).get(card.index) if card.index is not None else None
        self._before = self._there()
        for sample in self._samples():
            self._seen_us = max(self._seen_us, sample.timeStamp)

    def others(self, own: int = 1) -> bool:
        """Whether another process was on the card before, after or between; `own` is the number of our workers."""
        between = {sample.pid for sample in self._samples() if sample.timeStamp > self._seen_us}
        return max(len(self._before), len(self._there())) > self._waiting or len(between) > own

    def _there(self) -> set[int]:
        return {process.pid for process in self._ask("nvmlDeviceGetComputeRunningProcesses")}

    def _samples(self) -> Sequence[Any]:
        return self._ask("nvmlDeviceGetProcessUtilization", self._seen_us)

    def _ask(self, question: str, *arguments: Any) -> Sequence[Any]:
        """The card's answer; empty if it does not list processes, or keeps no history of them."""
        if self._handle is None:
            return []
        return list(ask(self._nvml, question, self._handle, *arguments) or [])


def _opened(nvml: Any, index: int, handle: Any) -> Card:
    """The card behind a handle."""
    memory = ask(nvml, "nvmlDeviceGetMemoryInfo", handle)
    mode = ask(nvml, "nvmlDeviceGetComputeMode", handle)
    return Card(
        _text(nvml.nvmlDeviceGetUUID(handle)),
        index,
        _text(nvml.nvmlDeviceGetName(handle)),
        memory.total if memory else 0,
        mode == nvml.NVML_COMPUTEMODE_EXCLUSIVE_PROCESS,
    )


def require_alike(cards: Sequence[Card]) -> None:
    """Raise UnknownCard unless all cards are of one model: a curve over cases must not mix models."""
    if len({card.model for card in cards}) > 1:
        listed = ", ".join(f"{number} ({card.model})" for number, card in enumerate(cards))
        raise UnknownCard(f"the cards are not alike, so --devices has to choose some that are: {listed}")


def _card(name: str, there: Sequence[Card]) -> Card | None:
    """The card with this number or beginning of a UUID, or None. The name of a MIG slice is not checked."""
    if re.fullmatch("[0-9]{1,4}", name):
        return there[int(name)] if int(name) < len(there) else None
    if name.startswith("MIG"):
        return Card(name, None, "MIG")
    fitting = [card for card in there if name and card.uuid.startswith(name)]
    return fitting[0] if len(fitting) == 1 else None


def _text(name: str | bytes) -> str:
    return name.decode() if isinstance(name, bytes) else name


def has_cuda() -> bool:
    """Whether this process may use an NVIDIA GPU; imports no framework."""
    return bool(usable_gpus())


def gpu(nvml: Any, handle: Any) -> dict[str, Any]:
    """The facts of one GPU; `nvml` is the module pynvml."""

    def fact(question: str, convert: Callable[[Any], Any], *arguments: Any) -> Any:
        answer = ask(nvml, question, handle, *arguments)
        return None if answer is None else convert(answer)

    cuda = nvml.nvmlSystemGetCudaDriverVersion()
    return {
        "name": nvml.nvmlDeviceGetName(handle),
        "memory_bytes": fact("nvmlDeviceGetMemoryInfo", lambda memory: memory.total),
        "driver": nvml.nvmlSystemGetDriverVersion(),
        "cuda_driver": f"{cuda // 1000}.{cuda % 1000 // 10}",
        "uuid": fact("nvmlDeviceGetUUID", hashed),
        "compute_capability": fact("nvmlDeviceGetCudaComputeCapability", lambda pair: f"{pair[0]}.{pair[1]}"),
        "power_limit_watts": fact("nvmlDeviceGetPowerManagementLimit", lambda milliwatts: milliwatts / 1000),
        "clock_max_hz": fact("nvmlDeviceGetMaxClockInfo", lambda mhz: mhz * 1_000_000, nvml.NVML_CLOCK_SM),
        "ecc": fact("nvmlDeviceGetEccMode", lambda modes: bool(modes[0])),
        "mig": fact("nvmlDeviceGetMigMode", lambda modes: bool(modes[0])),
    }


def usable_gpus() -> list[Any]:
    """The handles of the GPUs; empty if CUDA_VISIBLE_DEVICES hides all of them."""
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    if visible is not None and visible.split(",")[0].strip() in ("", "-1", "NoDevFiles"):
        return []
    return [handle for _, handle in handles(nvidia_driver())]


def handles(nvml: Any) -> Iterator[tuple[int, Any]]:
    """(index, handle) of each card that NVML opens for this process; empty without a driver (None).

    NVML also counts cards that it does not open: cards of another job on the node, and a card that fell off the bus.
    """
    for index in range(nvml.nvmlDeviceGetCount() if nvml else 0):
        handle = ask(nvml, "nvmlDeviceGetHandleByIndex", index)
        if handle is not None:
            yield index, handle


def unopened(nvml: Any) -> Iterator[tuple[int, str]]:
    """(index, reason) of each card that NVML counts but does not open."""
    for index in range(nvml.nvmlDeviceGetCount() if nvml else 0):
        try:
            nvml.nvmlDeviceGetHandleByIndex(index)
        except nvml.NVMLError as error:
            yield index, str(error)


def ask(nvml: Any, question: str, *arguments: Any) -> Any:
    """NVML's answer; None if the card does not support the question, or the driver is too old for it.

    If an old driver lacks a function, pynvml raises NVMLError or NVMLLibraryMismatchError; the latter is not a subclass
    of NVMLError.
    """
    try:
        return getattr(nvml, question)(*arguments)
    except (nvml.NVMLError, nvml.NVMLLibraryMismatchError):
        return None


@cache
def nvidia_driver() -> Any:
    """The module pynvml, or None without a driver."""
    nvml = importlib.import_module("pynvml")
    try:
        nvml.nvmlInit()
    except nvml.NVMLError:
        return None
    return nvml
