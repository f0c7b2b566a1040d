"""Words for work: names of charts and of their rows. The groups of cases for one chart come from analysis."""

from collections.abc import Collection, Iterable, Sequence

from snnbench.analysis.case_words import is_hidden, kind, neuron, size_in_words, sizes
from snnbench.analysis.families import FEWEST_VALUES, families, setting, settings, size, swept, written
from snnbench.cases.case import Case
from snnbench.recording.reading import Recording
from snnbench.report.numbers import counted, listed

__all__ = ["FEWEST_VALUES", "families", "setting", "settings", "size", "sizes", "swept"]
NEURON = ("beta", "alpha", "threshold")
"""The constants of a neuron, in the order of a heading."""
HIDDEN_FIELDS = ("workload", "reset", "detach_reset", "device")
"""Fields besides sizes that a name does not list: the profile stands for the reset, and every name has the device."""


def model(recording: Recording) -> str:
    """The model of a recording's machine, for a reader."""
    return recording.model or "unknown machine"


def missing(recording: Recording) -> str:
    """`12 of 39 planned cells, unfinished`; if closed, `25 of 32 planned cells are missing: no card`; else ""."""
    planned, count = recording.planned or 0, len(recording.records)
    if recording.closed:
        return f"{planned - count} of {planned} planned cells are missing: {recording.closed}"
    if recording.unfinished:
        return f"{count} of {planned} planned cells, unfinished" if planned else f"{counted(count, 'cell')}, unfinished"
    return ""


def torn(recording: Recording) -> str:
    """A sentence on lines that are no records, without its full stop; "" if all are."""
    if not recording.torn:
        return ""
    return f"{counted(recording.torn, 'line')} of the recording could not be read: a kill or a full disk tore them"


def remarks(recording: Recording) -> str:
    """What a reader must know of a recording as a whole: torn lines, and files in place of snnbench's own adapters."""
    names = recording.config.get("replaced", [])
    replaced = f"files of the user replaced snnbench's own adapters: {', '.join(names)}" if names else ""
    return "; ".join(filter(None, (torn(recording), replaced)))


def gaps(recordings: Iterable[Recording]) -> list[str]:
    """A line on each recording that is not whole, for a reader of a format that has no place for it."""
    parts = ((each.name, "; ".join(filter(None, (missing(each), remarks(each))))) for each in recordings)
    return [f"{name}: {words}" for name, words in parts if words]


def measured_of(recording: Recording, measured: int) -> str:
    """`9 of 12 cells measured`; if the run is unfinished, with the number of planned cells."""
    if recording.unfinished:
        return f"{missing(recording)}: {measured} measured"
    return f"{measured} of {counted(len(recording.records), 'cell')} measured"


def varying_sizes(case: Case, among: Collection[Case]) -> str:
    """Only the sizes in which these cases differ; all sizes if they do not differ."""
    varied = [axis for axis in case.SIZES if len({getattr(other, axis, None) for other in among}) > 1]
    return ", ".join(_size(case, axis) for axis in varied) or case.sizes()


def telling(case: Case, among: Collection[Case], told: Collection[str]) -> str:
    """The sizes and other fields in which these cases differ, without those that are `told` elsewhere."""
    names = [name for name in (*case.SIZES, *_named_fields(case)) if name not in told]
    varied = [name for name in names if len({getattr(other, name, None) for other in among}) > 1]
    return ", ".join(_size(case, name) if name in case.SIZES else _field(case, name) for name in varied)


def common_sizes(cases: Collection[Case]) -> str:
    """The sizes that all these cases share; empty for a single case, which all sizes name."""
    first = next(iter(cases))
    alike = [axis for axis in first.SIZES if len({getattr(other, axis, None) for other in cases}) == 1]
    named = [axis for axis in alike if not is_hidden(first, axis)]
    return ", ".join(_size(first, axis) for axis in named) if len(cases) > 1 else ""


def setting_name(case: Case, among: Collection[Case]) -> str:
    """`reset by subtraction, CPU`, and all fields that tell this setting from the others of a recording."""
    fields = {name: {getattr(other, name, None) for other in among} for name in _named_fields(case)}
    varying = [name for name, values in fields.items() if len(values) > 1]
    extra = ", ".join(_field(case, name) for name in varying)
    return kind(case) + (f", {extra}" if extra else "")


def sizes_of(cases: Sequence[Case], axis: str) -> str:
    """`256, 512 and 1024 neurons, batch 64, 200 steps`, for cases that differ along one axis."""
    *_, last = cases
    if len(cases) == 1:
        return sizes(last)
    values = listed([written(case, axis) for case in cases])
    varying = size_in_words(last, axis).replace(written(last, axis), values, 1)
    return ", ".join(filter(None, (varying, sizes(last, axis))))


def shared(cases: Collection[Case]) -> str:
    """The fields that all these cases have in common, in words; without later ones at their default."""
    first = next(iter(cases), None)
    if first is None:
        return ""
    fields = {name: {getattr(case, name, None) for case in cases} for name in _named_fields(first)}
    recorded = first.as_dict()
    return ", ".join(_field(first, name) for name, values in fields.items() if len(values) == 1 and name in recorded)


def axes(cases: Iterable[Case]) -> dict[str, tuple[str, str]]:
    """The sizes of these cases: axis -> (letter, words)."""
    return {axis: names for case in cases for axis, names in case.SIZES.items()}


def axis_name(case: Case, axis: str) -> str:
    """`neurons N`."""
    letter, words = case.SIZES[axis]
    return f"{words} {letter}"


def main_axis(case: Case) -> str:
    """The axis of size that times are drawn against."""
    return next(iter(case.SIZES))


def _named_fields(case: Case) -> list[str]:
    return [name for name in case.names() if name not in (*HIDDEN_FIELDS, *case.SIZES, *case.IN_KIND)]


def _size(case: Case, axis: str) -> str:
    """`N=256`."""
    return f"{case.SIZES[axis][0]}={written(case, axis)}"


def _field(case: Case, name: str) -> str:
    value = getattr(case, name)
    words = name.replace("_", " ")
    if name in ("dtype", "precision", "surrogate"):
        return str(value)
    if name == "trained":
        return f"{' and '.join(case.trained_constants) or 'nothing'} trained"
    if name == "trained_each":
        return f"one constant a {value}"
    if name == "chunk_steps":
        return f"chunks of {value} steps" if value else "no chunks"
    if name == "carried_gradient":
        return "gradient carried" if value else "gradient cut"
    if isinstance(value, bool):
        return words if value else f"no {words}"
    return f"{words} {value:g}" if isinstance(value, float) else f"{words} {value}"


def title(case: Case) -> str:
    """A case in one line for a program, different from every other case's."""
    return f"{case.kind}: {case.sizes()} on {case.device}, {_rest(case)}"


def heading(case: Case) -> str:
    """A case in one line for a reader, different from every other case's."""
    return f"{kind(case)}: {sizes(case)}, {_rest(case)}"


def forward_heading(case: Case) -> str:
    """The part of a heading that the forward pass depends on."""
    entering = f"{case.input_words}, " if case.input_words else ""
    return (
        f"{neuron(case)}: {sizes(case)}, {case.dtype} ({case.precision}), {_constants(case)}{entering}seed {case.seed}"
    )


def _constants(case: Case) -> str:
    """`beta=0.9, alpha=0.5, threshold=1, ` with those that are fields of the workload: a graph has its own."""
    return "".join(f"{name}={getattr(case, name):g}, " for name in NEURON if name in case.names())


def _trained(case: Case) -> str:
    """`beta and threshold trained, one a layer, `, or nothing."""
    named = " and ".join(case.trained_constants)
    return f"{named} trained, one a {case.trained_each}, " if named else ""


def _chunks(case: Case) -> str:
    """`chunks of 250 steps with the gradient cut between them, `; nothing if the steps come as a whole."""
    cut = " with the gradient cut between them" if case.cuts_gradient else ""
    return f"chunks of {case.chunk_steps} steps{cut}, " if case.chunk_steps else ""


def _rest(case: Case) -> str:
    """All of a title but the kind and the sizes."""
    threads = "1 thread" if case.threads == 1 else f"{case.threads} threads"
    entering = f"{case.input_words}, " if case.input_words else ""
    return (
        f"{case.dtype} ({case.precision}), {_constants(case)}{_trained(case)}"
        f"{case.surrogate}({case.slope:g}), {_chunks(case)}{entering}{threads}, seed {case.seed}"
    )
