"""Configs: files that say what to run, how to measure it and why, checked before anything starts.

A sweep is the product of its axes. Any value of a case may be a list. A value in [case] holds for every sweep that does
not give its own. Values that choose a measurement have no default: a missing one is an error.

This file is long: the models of a file and its loading stand together, for an error of a model is explained by its
place in the file.
"""

from collections.abc import Iterator, Sequence
from itertools import product
from math import prod
from pathlib import Path
from typing import Annotated, Any, Literal, Self, TypeVar

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PrivateAttr,
    StrictBool,
    model_validator,
)
from pydantic_core import PydanticCustomError, PydanticKnownError

from snnbench.adapter.contender import Contender, UnknownContender, Work, find, find_all
from snnbench.adapter.declaration import Adapter
from snnbench.digest import digest
from snnbench.plan.config_errors import Mistake, explain, validated
from snnbench.plan.config_file import ConfigError, Document, override, read
from snnbench.work.case import PROFILES, Case, Dtype, InputKind, Precision, Surrogate

__all__ = ["Axes", "Config", "ConfigError", "Phase", "Protocol", "Sweep", "Work", "expand", "load"]

Phase = Literal["inference", "forward", "backward", "train"]

MOST_CASES = 100_000
"""Most cases of a sweep: more come from a mistake in a product of axes, cannot be run and would fill the memory."""
SHOWN_ERRORS = 5
"""Most errors shown at once; further ones often follow from the first."""


def _listed(value: Any) -> Any:
    return value if isinstance(value, list | tuple) else [value]


def _filled(value: Any) -> Any:
    values = _listed(value)
    if not values:
        raise PydanticCustomError("empty", "is an empty list: it holds no value")
    return values


def _distinct(values: tuple[Any, ...]) -> tuple[Any, ...]:
    if len(set(values)) < len(values):
        raise PydanticCustomError("repeated", "should not hold a value twice")
    return values


def _profile(name: str) -> str:
    if name not in PROFILES:
        raise PydanticKnownError("literal_error", {"expected": ", ".join(map(repr, PROFILES))})
    return name


T = TypeVar("T")
Axis = Annotated[tuple[T, ...], BeforeValidator(_filled)]
# Strict, because "16", 16.5 and true are mistakes here, not numbers of neurons.
# Bounded, far above any possible run, because recordings hold the configs of strangers.
Count = Annotated[int, Field(ge=1, le=10**9, strict=True)]
CountOrNone = Annotated[int, Field(ge=0, le=10**9, strict=True)]
MOST_ATTEMPTS = 10
"""Most times that a cell may be measured again: if that does not help, another machine does."""

Trials = Annotated[int, Field(ge=1, le=10_000, strict=True)]
TrialsOrNone = Annotated[int, Field(ge=0, le=10_000, strict=True)]
Attempts = Annotated[int, Field(ge=0, le=MOST_ATTEMPTS, strict=True)]
Positive = Annotated[float, Field(gt=0, le=1e9, strict=True, allow_inf_nan=False)]
Fraction = Annotated[float, Field(ge=0, le=1, strict=True)]
Rate = Annotated[float, Field(gt=0, le=1, strict=True)]
Name = Annotated[str, Field(pattern=r"^[a-z0-9-]+$")]
Profile = Annotated[str, AfterValidator(_profile)]


NOT_OF_A_CELL = {"trials", "memory_trials", "timeout_seconds", "check_seconds", "seed", "remeasure"}
"""Keys of a protocol that do not change the numbers of a single cell."""


class Protocol(BaseModel, frozen=True, extra="forbid"):
    """How a case is measured. Without phases it is only verified; without memory trials its memory is not measured."""

    phases: Annotated[tuple[Phase, ...], BeforeValidator(_listed), AfterValidator(_distinct)]
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

    @property
    def digest(self) -> str:
        """16 hexadecimal digits of the keys that a cell's numbers depend on."""
        return digest(self.model_dump(mode="json", exclude=NOT_OF_A_CELL))


class Axes(BaseModel, frozen=True, extra="forbid"):
    """The values that make up cases: the fields of Case, with a profile for the pair (reset, detach_reset)."""

    profile: Axis[Profile]
    neurons: Axis[Count]
    batch: Axis[Count]
    time_steps: Axis[Count]
    layers: Axis[Count]
    device: Axis[Literal["cpu", "cuda"]]
    dtype: Axis[Dtype]
    precision: Axis[Precision]
    threads: Axis[Count]
    beta: Axis[Fraction]
    threshold: Axis[Positive]
    surrogate: Axis[Surrogate]
    slope: Axis[Positive]
    input_kind: Axis[InputKind]
    input_rate: Axis[Rate]
    input_gradient: Axis[StrictBool]
    seed: Axis[CountOrNone]

    def cases(self) -> Iterator[Case]:
        """The product of the axes, in the order of the fields above; the last varies fastest."""
        names = list(Axes.model_fields)[1:]
        for profile, *values in product(*(getattr(self, name) for name in Axes.model_fields)):
            reset, detach_reset = PROFILES[profile]
            yield Case(reset=reset, detach_reset=detach_reset, **dict(zip(names, values, strict=True)))


class Sweep(Axes, frozen=True, extra="forbid"):
    """Cases, and the contenders that run them. `libraries` holds the patterns of contender.py."""

    name: Name
    analysis: str = ""
    libraries: Axis[str]

    @model_validator(mode="after")
    def _can_be_run(self) -> Self:
        count = prod(len(getattr(self, name)) for name in Axes.model_fields)
        if count > MOST_CASES:
            raise PydanticCustomError("too_many", f"holds {count:,} cases; at most {MOST_CASES:,}")
        return self


class Config(BaseModel):
    """A whole file. `analysis` is its purpose and how to read its results; others are divided by the `baseline`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: Name
    analysis: str
    baseline: str
    protocol: Protocol
    sweeps: Axis[Sweep] = Field(alias="sweep")
    _document: Document = PrivateAttr(default_factory=Document)

    def resolved(self) -> dict[str, Any]:
        """Plain data with all defaults filled in; written to a file, it is a config of its own."""
        return self.model_dump(mode="json", by_alias=True, exclude_none=True)


KEYS = {
    "": ["name", "analysis", "baseline", "protocol", "case", "sweep"],
    "protocol": list(Protocol.model_fields),
    "case": list(Axes.model_fields),
    "sweep": list(Sweep.model_fields),
}
"""The keys of each section; "" is the top level."""


def load(path: Path, settings: Sequence[str] = (), default_threads: int | None = None) -> Config:
    """The config in the file at `path`, with the `--set` `settings` ("key=value") applied. Raises ConfigError.

    `default_threads` is for cases without threads; if it is None, a case without threads is an error.
    """
    document = override(read(path), settings)
    shared, sweeps = document.tables["case"], document.tables["sweep"]
    default = {} if default_threads is None else {"threads": default_threads}
    merged = {key: value for key, value in document.tables.items() if key != "case"}
    merged["sweep"] = [{**default, **shared, **own} for own in sweeps]
    _, wrong_in_case = validated(Axes, shared, ("case",))
    config, elsewhere = validated(Config, merged)
    wrong = [mistake for mistake in wrong_in_case if mistake.kind != "missing"]
    wrong += [mistake for mistake in elsewhere if not _is_reported(mistake, shared, sweeps)]
    if any(mistake.kind == "extra_forbidden" for mistake in wrong):  # a mistyped key is missing too: say it once
        wrong = [mistake for mistake in wrong if mistake.kind != "missing"]
    lines = [explain(document, mistake, KEYS) for mistake in wrong]
    lines += [f"{document.where('sweep', number)}: an earlier sweep has this name" for number in _repeated(sweeps)]
    if config is None or lines:
        raise _error(lines)
    config._document = document
    return config


def expand(config: Config, adapters: dict[str, Adapter]) -> list[Work]:
    """Every work in the order of the file, once; `adapters` by name. Raises ConfigError for an unknown library."""
    works: dict[Work, None] = {}
    contenders = _contenders(config, adapters)
    for sweep, libraries in zip(config.sweeps, contenders, strict=True):
        for case in sweep.cases():
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


def _is_reported(mistake: Mistake, shared: dict[str, Any], sweeps: list[dict[str, Any]]) -> bool:
    """Whether a mistake in a sweep is already reported, for [case] or for an earlier sweep."""
    match mistake.location:
        case ("sweep", int(number), str(key), *_) if mistake.kind == "missing" and key in KEYS["case"]:
            return any(key not in sweep for sweep in sweeps[:number])
        case ("sweep", int(number), str(key), *_):
            return key in shared and key not in sweeps[number]
    return False


def _repeated(sweeps: list[dict[str, Any]]) -> list[int]:
    names = [sweep.get("name") for sweep in sweeps]
    return [number for number, name in enumerate(names) if name is not None and name in names[:number]]


def _error(lines: list[str]) -> ConfigError:
    """The error with these lines, each once, and the first few of many."""
    return ConfigError("\n".join(list(dict.fromkeys(lines))[:SHOWN_ERRORS]))
