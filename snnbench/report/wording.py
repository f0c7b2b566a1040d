"""Words for work: groups of cases for one chart, and names of charts and of their rows.

A *setting* is a case without its sizes. A *family* is cases of one setting that differ in one size only.
"""

from collections.abc import Collection, Iterable

from snnbench.recording.reading import Recording
from snnbench.work.case import Case

SIZES = {"neurons": "N", "batch": "B", "time_steps": "T", "layers": "L"}
NAMES = {"neurons": "neurons N", "batch": "batch size B", "time_steps": "time steps T", "layers": "layers L"}
FEWEST_VALUES = 3
"""The fewest values of an axis for a fit with an error."""
HIDDEN_FIELDS = ("workload", "reset", "detach_reset", "device", *SIZES)
"""Fields that a name does not list: the profile stands for the reset, and every name has the device."""


def model(recording: Recording) -> str:
    """The model of a recording's machine, for a reader."""
    return recording.model or "unknown machine"


def setting(case: Case) -> Case:
    """The case without its sizes."""
    return case.with_(neurons=0, batch=0, time_steps=0, layers=0)


def settings(cases: Iterable[Case]) -> dict[Case, list[Case]]:
    """Cases by setting, each in their order."""
    by_setting: dict[Case, list[Case]] = {}
    for case in cases:
        by_setting.setdefault(setting(case), []).append(case)
    return by_setting


def families(cases: Iterable[Case], axis: str) -> list[list[Case]]:
    """The cases grouped by all but one size, each group by that size; the largest groups first."""
    by_family: dict[Case, list[Case]] = {}
    for case in cases:
        by_family.setdefault(case.with_(**{axis: 0}), []).append(case)
    ordered = [sorted(group, key=lambda case: size(case, axis)) for group in by_family.values()]
    return sorted(ordered, key=len, reverse=True)


def swept(cases: Iterable[Case], axis: str) -> list[Case]:
    """The largest family along an axis, if it has enough values for a fit; else empty."""
    return next((family for family in families(cases, axis) if len(family) >= FEWEST_VALUES), [])


def size(case: Case, axis: str) -> int:
    """Its size along an axis."""
    return int(getattr(case, axis))


def sizes(case: Case, leaving_out: str = "") -> str:
    """`N=256, B=16, T=100`, without the axis that a chart shows, and without L=1."""
    shown = [axis for axis in SIZES if axis != leaving_out and not (axis == "layers" and case.layers == 1)]
    return ", ".join(f"{SIZES[axis]}={size(case, axis)}" for axis in shown)


def told_apart(case: Case, among: Collection[Case]) -> str:
    """Only the sizes in which these cases differ; all sizes if they do not differ."""
    varied = [axis for axis in SIZES if len({size(other, axis) for other in among}) > 1]
    return ", ".join(f"{SIZES[axis]}={size(case, axis)}" for axis in varied) or sizes(case)


def in_common(cases: Collection[Case]) -> str:
    """The sizes that all these cases share; empty for a single case, which all sizes name."""
    first = next(iter(cases))
    alike = [axis for axis in SIZES if len({size(other, axis) for other in cases}) == 1]
    named = [axis for axis in alike if not (axis == "layers" and first.layers == 1)]
    return ", ".join(f"{SIZES[axis]}={size(first, axis)}" for axis in named) if len(cases) > 1 else ""


def setting_name(case: Case, among: Collection[Case]) -> str:
    """`subtract on cpu`, and all fields that tell this setting from the others of a recording."""
    fields = {name: {getattr(other, name) for other in among} for name in Case.__dataclass_fields__}
    varying = [name for name, values in fields.items() if len(values) > 1 and name not in HIDDEN_FIELDS]
    extra = ", ".join(_field(case, name) for name in varying)
    return f"{case.profile} on {case.device}" + (f", {extra}" if extra else "")


def shared(cases: Collection[Case]) -> str:
    """The fields that all these cases have in common, in words."""
    fields = {name: {getattr(case, name) for case in cases} for name in Case.__dataclass_fields__}
    fixed = [name for name, values in fields.items() if len(values) == 1 and name not in HIDDEN_FIELDS]
    first = next(iter(cases), None)
    return ", ".join(_field(first, name) for name in fixed) if first else ""


def _field(case: Case, name: str) -> str:
    value = getattr(case, name)
    words = name.replace("_", " ")
    if name in ("dtype", "precision", "surrogate"):
        return str(value)
    if isinstance(value, bool):
        return words if value else f"no {words}"
    return f"{words} {value:g}" if isinstance(value, float) else f"{words} {value}"


def title(case: Case) -> str:
    """A case in one line, different from every other case's."""
    layers = "" if case.layers == 1 else f", {case.layers} layers"
    threads = "1 thread" if case.threads == 1 else f"{case.threads} threads"
    entering = "input rate" if case.input_kind == "spikes" else f"{case.input_kind} input at rate"
    gradient = "" if case.input_gradient else ", no gradient of the input"
    return (
        f"{case.profile}: N={case.neurons}, B={case.batch}, T={case.time_steps}{layers} on {case.device}, "
        f"{case.dtype} ({case.precision}), beta={case.beta:g}, threshold={case.threshold:g}, "
        f"{case.surrogate}({case.slope:g}), {entering} {case.input_rate:g}{gradient}, {threads}, "
        f"seed {case.seed}"
    )
