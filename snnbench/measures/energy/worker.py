"""The energy of a pass: a counter of the machine around at least a second of passes, less the machine's idle power.

    net energy of a pass = (joules while passes run - idle power * their time) / passes

A card counts the energy of the whole card (NVML, since Volta), and a CPU that of each of its packages (RAPL, where /sys
shows it). So the work of others is in it, too. The idle power is measured right before, while this process sleeps. A
machine without such a counter has no energy; nothing is estimated from a data sheet.

    https://docs.nvidia.com/deploy/nvml-api/group__nvmlDeviceQueries.html
    https://www.kernel.org/doc/html/latest/power/powercap/powercap.html
"""

import ctypes
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from snnbench.worker import clocks, timing
from snnbench.worker.durations import trial_median
from snnbench.worker.measure import Measure, Timed

IDLE_S = 1.0
LEAST_NS = 1_000_000_000
"""A counter advances in steps of up to 0.1 s, which a second of passes makes small."""
POWERCAP = Path("/sys/class/powercap")


@dataclass(frozen=True, slots=True)
class Counter:
    """A counter of energy: its name, and a function that returns the microjoules so far."""

    name: str
    read_uj: Callable[[], int]


@dataclass(frozen=True, slots=True)
class Counted:
    """What a counter added up around `passes` passes in `wall_ns`, and the idle power before them."""

    counter: str
    passes: int
    wall_ns: int
    counted_uj: int
    idle_ns: int
    idle_uj: int


def counter(device: str) -> Counter | None:
    """The counter of a device's energy, or None if this machine has none that may be read."""
    return _of_card() if device.startswith("cuda") else of_packages()


def of_packages(folder: Path = POWERCAP) -> Counter | None:
    """The counter of all packages of the CPU."""
    try:
        zones = [
            Zone(zone / "energy_uj", int((zone / "max_energy_range_uj").read_text()))
            for zone in sorted(folder.glob("intel-rapl:*"))
            if (zone / "name").read_text().startswith("package")
        ]
        if not zones:
            return None
        sum(zone.read_uj() for zone in zones)
    except (OSError, ValueError):  # often only root may read it
        return None
    return Counter("rapl", lambda: sum(zone.read_uj() for zone in zones))


class Zone:
    """One package's counter, which begins again at 0 after `range_uj`. It must be read before it does so twice."""

    def __init__(self, path: Path, range_uj: int) -> None:
        self._path, self._range_uj = path, range_uj
        self._last_uj, self._total_uj = int(path.read_text()), 0

    def read_uj(self) -> int:
        """Microjoules since this object was made."""
        now_uj = int(self._path.read_text())
        self._total_uj += now_uj - self._last_uj + (self._range_uj if now_uj < self._last_uj else 0)
        self._last_uj = now_uj
        return self._total_uj


def _of_card() -> Counter | None:
    if (driver := clocks.opened()) is None:
        return None
    nvml, handle = driver

    def read_uj() -> int:
        millijoules = ctypes.c_ulonglong()
        if status := nvml.nvmlDeviceGetTotalEnergyConsumption(handle, ctypes.byref(millijoules)):
            raise OSError(f"nvmlDeviceGetTotalEnergyConsumption gave the error {status}")
        return int(millijoules.value) * 1000

    try:
        read_uj()
    except (OSError, AttributeError):
        return None
    return Counter("nvml", read_uj)


def measure(
    phase: timing.Phase,
    pass_ns: float,
    counter: Counter,
    busy_ns: int = 0,
    clock: timing.Clock = time.perf_counter_ns,
    sleep: Callable[[float], None] = time.sleep,
) -> Counted:
    """Measure the idle power, and then the energy of at least a second of passes, which take `pass_ns` each."""
    phase.wait(None)
    idle_uj, started = counter.read_uj(), clock()
    sleep(IDLE_S)
    idle_uj, idle_ns = counter.read_uj() - idle_uj, clock() - started
    timing.keep_busy(phase, busy_ns, clock)
    passes = max(1, -(-LEAST_NS // max(1, int(pass_ns))))
    counted_uj, done, wall_ns = counter.read_uj(), 0, 0
    while wall_ns < LEAST_NS:  # passes may be faster than before
        wall_ns += timing.repeat(phase, passes, clock).wall_ns
        done += passes
    return Counted(counter.name, done, wall_ns, counter.read_uj() - counted_uj, idle_ns, idle_uj)


class Energy(Measure):
    """The energy of each phase."""

    def after(self, timed: Timed) -> dict[str, Any]:
        """The key `energy`, if the machine counts it.

        The phase `backward` has none: each of its passes needs a forward pass before.
        """
        source = counter(self.work.request.case.device)
        if source is None or timed.phase.prepare is not None:
            return {}
        pass_ns = trial_median(timed.timing.repetitions_ns, timed.timing.passes)
        self.work.settle()  # threads that still wait in a loop are not idle
        with suppress(OSError):  # a counter that fails takes no time from the record; the settings say so
            return {"energy": asdict(measure(timed.phase, pass_ns, source, timed.busy_ns))}
        return {}

    def settings(self, phases: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
        """The counter that was read, or why no counter was."""
        counters = [phase["energy"]["counter"] for phase in phases.values() if "energy" in phase]
        why = "epochs have none so far" if self.work.request.case.is_fed else "no counter of energy can be read"
        return {"energy": counters[0] if counters else f"not measured: {why}"}


MEASURE = Energy
