"""Configs: files that say what to run, how to measure it and why, checked before anything starts.

A sweep is the product of its axes. Any value of a case may be a list. A value in [case] holds for every sweep that does
not give its own. Values that choose a measurement have no default: a missing one is an error.
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainValidator,
    PrivateAttr,
    SerializeAsAny,
    SerializerFunctionWrapHandler,
    StrictBool,
    create_model,
    model_serializer,
    model_validator,
)
from pydantic_core import PydanticCustomError

from snnbench import measures, workloads
from snnbench.adapter.contender import Contender, UnknownContender, Work, find, find_all
from snnbench.adapter.declaration import Adapter
from snnbench.digest import digest
from snnbench.plan.axes import Axes, Axis, fields_of, listed, types
from snnbench.plan.config_errors import Mistake, explain, validated
from snnbench.plan.config_file import ConfigError, Document, override, read
from snnbench.plan.given_axes import with_axes, workload_of

__all__ = ["Config", "ConfigError", "Phase", "Protocol", "Sweep", "Work", "expand", "load"]

Phase = Literal[workloads.PHASES]  # type: ignore[valid-type]

MOST_CASES = 100_000
"""Most cases of a sweep: more come from a mistake in a product of axes, cannot be run and would fill the memory."""
SHOWN_ERRORS = 5
"""Most errors shown at once; further ones often follow from the first."""


def _distinct(values: tuple[Any, ...]) -> tuple[Any, ...]:
    if len(set(values)) < len(values):
        raise PydanticCustomError("repeated", "should not hold a value twice")
    return values


# Bounded, far above any possible run, because recordings hold the configs of strangers.
Count = Annotated[int, Field(ge=1, le=10**9, strict=True)]
CountOrNone = Annotated[int, Field(ge=0, le=10**9, strict=True)]
MOST_ATTEMPTS = 10
"""Most times that a cell may be measured again: if that does not help, another machine does."""

Trials = Annotated[int, Field(ge=1, le=10_000, strict=True)]
TrialsOrNone = Annotated[int, Field(ge=0, le=10_000, strict=True)]
Attempts = Annotated[int, Field(ge=0, le=MOST_ATTEMPTS, strict=True)]
Positive = Annotated[float, Field(gt=0, le=1e9, strict=True, allow_inf_nan=False)]
Name = Annotated[str, Field(pattern=r"^[a-z0-9-]+$")]
Until = Literal["all", "certain"]


NOT_OF_A_CELL = {
    *("trials", "memory_trials", "timeout_seconds", "check_seconds", "seed", "remeasure", "until"),
    *measures.asked_for(),
}
"""Keys of a protocol that do not change the numbers of a single cell, nor make two cells incomparable."""


class Core(BaseModel, frozen=True, extra="forbid"):
    """How a case is measured. Without phases it is only verified; without memory trials its memory is not measured."""

    phases: Annotated[tuple[Phase, ...], BeforeValidator(listed), AfterValidator(_distinct)]
    trials: Trials
    memory_trials: TrialsOrNone
    warmup_passes: Count  # at least one, for the first pass includes compilation
    repetitions: Count
    min_repetition_ms: Positive
    max_phase_seconds: Positive  # stops repeating early, once at least 3 repetitions are there
    timeout_seconds: Positive
    check_seconds: Positive = 2.0  # larger answers are compared in parts
    memory_limit_gib: Positive | None = None  # None: the machine's memory
    seed: CountOrNone  # of the order of trials
    remeasure: Attempts = 2  # how often a disturbed cell is measured again
    until: Until = "all"  # "certain": a race, in which slower contenders have fewer trials

    @classmethod
    def completed(cls, recorded: Mapping[str, Any]) -> dict[str, Any]:
        """A recorded protocol, with the defaults of keys that are younger than the recording."""
        defaults = {name: key.default for name, key in cls.model_fields.items() if not key.is_required()}
        return defaults | dict(recorded)

    @property
    def is_race(self) -> bool:
        """Whether slower contenders have fewer trials."""
        return self.until == "certain" and bool(self.phases)

    @property
    def further(self) -> tuple[str, ...]:
        """The measures that it asks for."""
        return tuple(name for name in measures.asked_for() if getattr(self, name))

    @property
    def digest(self) -> str:
        """16 hexadecimal digits of the keys that a cell's numbers depend on."""
        return digest(self.model_dump(mode="json", exclude=NOT_OF_A_CELL))


if TYPE_CHECKING:

    class Protocol(Core, frozen=True):
        """The protocol of a config, with a key for each measure that can be asked for."""

else:
    Protocol = create_model("Protocol", __base__=Core, **{name: (bool, False) for name in measures.asked_for()})


class Sweep(Axes, frozen=True, extra="forbid"):
    """Cases of one workload, and the contenders that run them. `libraries` holds the patterns of contender.py.

    An `optional` sweep is left out on a machine without its device, and where other devices are asked for.
    """

    name: Name
    analysis: str = ""
    libraries: Axis[str]
    optional: StrictBool = False
    workload: Literal[tuple(workloads.WORKLOADS)] = workloads.DEFAULT  # type: ignore[valid-type]

    @model_validator(mode="after")
    def _can_be_run(self) -> Self:
        if self.count > MOST_CASES:
            raise PydanticCustomError("too_many", f"holds {self.count:,} cases; at most {MOST_CASES:,}")
        return self

    @model_serializer(mode="wrap")
    def _without_default(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """As plain data; defaults are left out that older recordings do not have."""
        document: dict[str, Any] = handler(self)
        if self.workload == workloads.DEFAULT:
            del document["workload"]
        if not self.optional:
            del document["optional"]
        return document


@cache
def sweep_of(workload: str) -> type[Sweep]:
    """The model of a workload's sweeps."""
    fields = fields_of(workload)
    model: type[Sweep] = create_model("Sweep", __base__=Sweep, **fields)
    model.CASE, model.AXES = workloads.WORKLOADS[workload].Case, tuple(fields)
    return model


def _sweep(value: Any) -> Any:
    """A sweep by the model of its workload; an unknown workload is an error of the base model."""
    if isinstance(value, Sweep):
        return value
    return sweep_of(workload_of(value)).model_validate(value)


class Config(BaseModel):
    """A whole file. `analysis` is its purpose and how to read its results; others are divided by the `baseline`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: Name
    analysis: str
    baseline: str
    protocol: Protocol
    sweeps: Axis[SerializeAsAny[Annotated[Sweep, PlainValidator(_sweep)]]] = Field(alias="sweep")
    _document: Document = PrivateAttr(default_factory=Document)

    def with_protocol(self, **changes: Any) -> Self:
        """The same config with other values of its protocol. Raises ValidationError."""
        protocol = Protocol.model_validate(self.protocol.model_dump() | changes)
        return self.model_copy(update={"protocol": protocol})

    def resolved(self) -> dict[str, Any]:
        """Plain data with all defaults filled in; written to a file, it is a config of its own."""
        return self.model_dump(mode="json", by_alias=True, exclude_none=True)


def keys(used: Iterable[str]) -> dict[str, list[str]]:
    """The keys of each section, "" for the top level, for sweeps of the `used` workloads."""
    axes = list(dict.fromkeys(name for workload in used for name in types(workload)))
    return {
        "": ["name", "analysis", "baseline", "protocol", "case", "sweep"],
        "protocol": list(Protocol.model_fields),
        "case": [*axes, "workload"],
        "sweep": [*axes, *Sweep.model_fields],
    }


def load(
    path: Path,
    settings: Sequence[str] = (),
    default_threads: int | None = None,
    axes: Mapping[str, Sequence[Any]] | None = None,
    cards: int = 0,
) -> Config:
    """The config in the file at `path`, with the `--set` `settings` ("key=value") applied. Raises ConfigError.

    `axes` are values for every sweep that has such an axis. `default_threads` is for cases without threads; if it is
    None, a case without threads is an error. Cells on so many `cards` run side by side, so they share these threads;
    without one, optional sweeps on cards are left out.
    """
    document = _here(read(path), cards, (axes or {}).get("device", ()))
    document = with_axes(override(document, settings), axes or {})
    shared, sweeps = document.tables["case"], document.tables["sweep"]

    def default(sweep: Mapping[str, Any]) -> dict[str, int]:
        if default_threads is None:
            return {}
        is_on_cards = all(str(device).startswith("cuda") for device in listed(sweep.get("device", "")))
        return {"threads": max(1, default_threads // max(1, cards)) if is_on_cards else default_threads}

    merged = {key: value for key, value in document.tables.items() if key != "case"}
    merged["sweep"] = [{**default({**shared, **own}), **_applicable(shared, own), **own} for own in sweeps]
    for sweep in merged["sweep"]:
        sweep.setdefault("workload", workload_of(sweep))
    used = list(dict.fromkeys(workload_of(sweep) for sweep in merged["sweep"])) or [workloads.DEFAULT]
    _, wrong_in_case = validated(_shared_model(tuple(used)), shared, ("case",))
    config, elsewhere = validated(Config, merged)
    wrong = [mistake for mistake in wrong_in_case if mistake.kind != "missing"]
    wrong += _first_of_each(elsewhere, wrong, sweeps)
    if any(mistake.kind == "extra_forbidden" for mistake in wrong):  # a mistyped key is missing too: say it once
        wrong = [mistake for mistake in wrong if mistake.kind != "missing"]
    lines = [explain(document, mistake, keys(_concerned(mistake, merged["sweep"], used))) for mistake in wrong]
    lines += [f"{document.where('sweep', number)}: an earlier sweep has this name" for number in _repeated(sweeps)]
    if config is not None:
        lines += _foreign_phases(config, document)
    if config is None or lines:
        raise _error(lines)
    config._document = document
    return config


def _here(document: Document, cards: int, devices: Sequence[str]) -> Document:
    """The document without the optional sweeps of other devices than `devices`, and of cards where `cards` is 0."""
    shared, sweeps = document.tables.get("case", {}), document.tables.get("sweep", [])
    if not (isinstance(shared, dict) and isinstance(sweeps, list)):
        return document

    def is_kept(sweep: Any) -> bool:
        if not (isinstance(sweep, dict) and sweep.get("optional")):
            return True
        own = listed({**shared, **sweep}.get("device", ""))
        return any((each != "cuda" or cards) and (not devices or each in devices) for each in own)

    return Document(document.file, {**document.tables, "sweep": [each for each in sweeps if is_kept(each)]})


def expand(config: Config, adapters: dict[str, Adapter]) -> list[Work]:
    """Every work in the order of the file, once; `adapters` by name.

    Raises ConfigError for an unknown library, and for a case that is no work.
    """
    works: dict[Work, None] = {}
    contenders = _contenders(config, adapters)
    for number, (sweep, libraries) in enumerate(zip(config.sweeps, contenders, strict=True)):
        for case in sweep.cases():
            if case.lacks:
                raise ConfigError(f"{config._document.where('sweep', number)}: {case.lacks}")
            works.update((Work(case, library, variant), None) for library, variant in libraries)
    return list(works)


def baseline_of(config: Config, adapters: dict[str, Adapter]) -> Contender:
    """The baseline of a config. Raises ConfigError if it is not one contender."""
    where = config._document.where("baseline")
    try:
        named = find(config.baseline, adapters)
    except UnknownContender as error:
        raise ConfigError(f"{where}: {error}") from error
    if len(named) != 1 or "*" in config.baseline:
        raise ConfigError(f"{where}: {config.baseline!r} should be one library or library/variant")
    return named[0]


def _contenders(config: Config, adapters: dict[str, Adapter]) -> list[list[Contender]]:
    """The contenders of each sweep. Raises ConfigError for unknown ones, and for the baseline."""
    where, errors = config._document.where, []
    contenders: list[list[Contender]] = []
    for number, sweep in enumerate(config.sweeps):
        named, wrong = find_all(sweep.libraries, adapters)
        errors += [f"{where('sweep', number, 'libraries')}: {error}" for error in wrong]
        if not named and not wrong:
            errors.append(f"{where('sweep', number, 'libraries')}: its patterns take out all that they name")
        contenders.append(named)
    try:
        baseline_of(config, adapters)
    except ConfigError as error:
        errors.append(str(error))
    if errors:
        raise _error(errors)
    return contenders


def _applicable(shared: dict[str, Any], own: dict[str, Any]) -> dict[str, Any]:
    """The values of [case] that hold for a sweep: its workload may lack an axis that another sweep has."""
    axes = types(workload_of(shared | own))
    everywhere = {name for workload in workloads.WORKLOADS for name in types(workload)}
    return {key: value for key, value in shared.items() if key in axes or key not in everywhere}


@cache
def _shared_model(used: tuple[str, ...]) -> type[BaseModel]:
    """The model of [case] for sweeps of these workloads."""
    fields = {name: field for workload in used for name, field in fields_of(workload).items()}
    fields["workload"] = (Sweep.model_fields["workload"].annotation, workloads.DEFAULT)
    model: type[BaseModel] = create_model("Case", __base__=Axes, **fields)
    return model


def _concerned(mistake: Mistake, sweeps: list[dict[str, Any]], used: list[str]) -> list[str]:
    """The workloads of the sweeps that a mistake is about."""
    match mistake.location:
        case ("sweep", int(number), *_):
            return [workload_of(sweeps[number])]
    return used


def _first_of_each(
    mistakes: Sequence[Mistake], wrong: Sequence[Mistake], sweeps: list[dict[str, Any]]
) -> list[Mistake]:
    """The mistakes in sweeps without those that are reported already: for [case], where `wrong` is, or a sweep."""
    wrong_keys = {mistake.location[1] for mistake in wrong if len(mistake.location) > 1}
    lacking: set[str] = set()
    first = []
    for mistake in mistakes:
        match mistake.location:
            case ("sweep", int(), str(key), *_) if mistake.kind == "missing" and key not in Sweep.model_fields:
                if key in lacking:
                    continue
                lacking.add(key)
            case ("sweep", int(number), str(key), *_) if key in wrong_keys and key not in sweeps[number]:
                continue
        first.append(mistake)
    return first


def _foreign_phases(config: Config, document: Document) -> list[str]:
    """A line for each phase of the protocol that the workload of some sweep does not have."""
    lines = []
    for name in dict.fromkeys(sweep.workload for sweep in config.sweeps):
        phases = workloads.WORKLOADS[name].Case.PHASES
        foreign = [phase for phase in config.protocol.phases if phase not in phases]
        there = f"{document.where('protocol', 'phases')}: "
        lines += [
            f"{there}the workload {name} has no phase {phase!r} (it has {', '.join(phases)})" for phase in foreign
        ]
    return lines


def _repeated(sweeps: list[dict[str, Any]]) -> list[int]:
    names = [sweep.get("name") for sweep in sweeps]
    return [number for number, name in enumerate(names) if name is not None and name in names[:number]]


def _error(lines: list[str]) -> ConfigError:
    """The error with these lines, each once, and the first few of many."""
    return ConfigError("\n".join(list(dict.fromkeys(lines))[:SHOWN_ERRORS]))
