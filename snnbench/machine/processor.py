"""The processor of a machine: its family and model as CPUID has them, and the name of that microarchitecture.

Hypervisors hide the rest of a processor's name: two generations are both "AMD EPYC", and differ in speed by half.
"""

from collections.abc import Mapping
from typing import Any

MICROARCHITECTURES = {
    "Zen": ["23-1", "23-17"],
    "Zen+": ["23-8", "23-24"],
    "Zen 2": ["23-49", "23-96", "23-104", "23-113"],
    "Zen 3": ["25-1", "25-8", "25-33", "25-68", "25-80"],
    "Zen 4": ["25-17", "25-24", "25-97", "25-116", "25-160"],
    "Zen 5": ["26-2", "26-17", "26-36", "26-68", "26-112"],
    "Haswell": ["6-60", "6-63", "6-69"],
    "Broadwell": ["6-61", "6-79", "6-86"],
    "Skylake or Cascade Lake": ["6-85"],
    "Skylake": ["6-78", "6-94"],
    "Kaby Lake or Coffee Lake": ["6-142", "6-158"],
    "Comet Lake": ["6-165"],
    "Ice Lake": ["6-106", "6-108", "6-126"],
    "Tiger Lake": ["6-140", "6-141"],
    "Rocket Lake": ["6-167"],
    "Alder Lake": ["6-151", "6-154"],
    "Raptor Lake": ["6-183", "6-186"],
    "Meteor Lake": ["6-170"],
    "Arrow Lake": ["6-197", "6-198"],
    "Lunar Lake": ["6-189"],
    "Sapphire Rapids": ["6-143"],
    "Emerald Rapids": ["6-207"],
    "Granite Rapids": ["6-173", "6-174"],
    "Sierra Forest": ["6-175"],
}
"""Microarchitecture -> its processors, each as family-model in decimal, which /proc/cpuinfo has."""
_NAMES = {number: name for name, numbers in MICROARCHITECTURES.items() for number in numbers}


def number(cpu: Mapping[str, Any]) -> str:
    """`26-2`, the family and model in the facts of a CPU; "" where the processor has none, as one of ARM."""
    family, _, rest = str(cpu.get("identity", "")).partition("-")
    model = rest.partition("-")[0]
    return f"{family}-{model}" if family and model else ""


def name(cpu: Mapping[str, Any]) -> str:
    """`AMD EPYC (Zen 5, family 26 model 2)`: the vendor's name of a CPU, and what tells its generation."""
    if not (known := number(cpu)):
        return str(cpu["model"])
    family, model = known.split("-")
    words = [*([_NAMES[known]] if known in _NAMES else []), f"family {family} model {model}"]
    return f"{cpu['model']} ({', '.join(words)})"
