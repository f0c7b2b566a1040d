"""The schema of a recording's documents: lines of records.jsonl, config.json, machine.json and environments.json.

Recordings come from strangers. A malformed document is refused when it is read.
"""

from functools import cache
from typing import Annotated, Any, Literal, NotRequired, Union, get_type_hints

from pydantic import AfterValidator, ConfigDict, Field, TypeAdapter, ValidationError
from typing_extensions import TypedDict

from snnbench import measures, workloads
from snnbench.cases.case import PROFILES, CountOrNone, Widths
from snnbench.measures.fields import MOST_NS, Bytes, Count, Duration, Elapsed, Name, Number, Ratio, Size
from snnbench.plan.config import MOST_ATTEMPTS
from snnbench.printable import printable

DRAFT = "https://json-schema.org/draft/2020-12/schema"
FLOOR = {"flops", "least_bytes", "floor_ns", "times_floor"}
"""Keys of a phase since schema 2, all or none of them."""

Attempt = Annotated[int, Field(ge=0, le=MOST_ATTEMPTS)]
Key = Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]{0,100}$")]
JoinedSizes = Annotated[str, Field(pattern=r"^[1-9][0-9]{0,6}(-[1-9][0-9]{0,6}R?){1,99}$")]
PhaseName = Literal[workloads.PHASES]  # type: ignore[valid-type]


SPECIAL = {"device": Annotated[str, Field(pattern=r"^[a-z0-9:]{1,20}$")], "seed": Count}
"""Fields of a case with a range of their own."""


def _case_document(workload: str) -> Any:
    """A case of a workload, every field of it but those at a default that came later."""
    case = workloads.WORKLOADS[workload].Case
    hints, bounded = get_type_hints(case), get_type_hints(case, include_extras=True)
    types = {int: Size, float: Number}
    fields: dict[str, Any] = {name: types.get(hints[name], hints[name]) for name in case.names()}
    fields |= {name: Count for name in case.names() if bounded[name] == CountOrNone}
    fields |= {name: JoinedSizes for name in case.names() if bounded[name] == Widths}
    fields |= {name: NotRequired[fields[name]] for name in case.LATER}
    make: Any = TypedDict
    document = make("CaseDocument", fields | SPECIAL)
    document.__pydantic_config__ = ConfigDict(extra="forbid")
    return document


CaseDocument: Any = Annotated[
    Union[tuple(map(_case_document, workloads.WORKLOADS))],  # noqa: UP007
    Field(discriminator="workload"),
]


class OutcomeDocument(TypedDict):
    """How a cell ended."""

    status: Literal["measured", "skipped", "failed"]
    verdict: NotRequired[Literal["exact", "equivalent", "deviates"]]
    kind: NotRequired[Name]
    reason: NotRequired[str]
    deviation: NotRequired[str]
    inference_only: NotRequired[str]
    inferred_from: NotRequired[str]
    own_rule: NotRequired[dict[str, Any]]
    scheduler: NotRequired[Name]


class CheckDocument(TypedDict):
    """The result of an exam or spot check."""

    compared: Count
    differing: Count
    unexplained: NotRequired[Count]
    first_wrong: NotRequired[str]
    rate: NotRequired[Ratio]
    rates: NotRequired[dict[str, Ratio]]
    expected_rate: NotRequired[Ratio | None]
    allowed: NotRequired[Count]
    gradient_errors: dict[str, Ratio]
    tolerances: NotRequired[dict[str, Ratio]]
    unprovable: NotRequired[str]
    cause: NotRequired[str]
    steps: NotRequired[list[list[Number]]]
    cosines: NotRequired[dict[str, Number]]
    neurons: NotRequired[Size | None]
    samples: NotRequired[Count | None]
    seed: NotRequired[Count | None]
    complaints: list[str]
    correct: NotRequired[bool]


class ContentionDocument(TypedDict):
    """CPUs that others took."""

    foreign_cpus: Number
    stolen_cpus: Number
    own_cpus: NotRequired[Number]
    error_cpus: NotRequired[Number]
    timed_cpus: NotRequired[Number]


class CoreTimingDocument(TypedDict):
    """A phase's raw durations, and its floor since schema 2."""

    build_ns: NotRequired[Duration]
    first_call_ns: Duration
    busy_passes: NotRequired[Count]
    warmup_ns: list[Duration]
    passes: Size
    repetitions_ns: Annotated[list[Elapsed], Field(min_length=1)]
    device_ns: NotRequired[list[Duration]]
    fresh_ns: NotRequired[list[Elapsed]]
    drawn_ns: NotRequired[list[Elapsed]]
    repeated_ns: NotRequired[list[Elapsed]]
    contested_ns: NotRequired[list[Elapsed]]
    contested_passes: NotRequired[Count]
    enough_ns: NotRequired[Count]
    instructions: NotRequired[list[Count]]
    compilations: NotRequired[Count]
    contention: NotRequired[ContentionDocument]
    parts_ns: NotRequired[dict[Name, list[Duration]]]
    loader_ns: NotRequired[dict[Name, list[Duration]]]
    losses: NotRequired[list[Number]]
    losses_digest: NotRequired[Key]
    accuracies: NotRequired[list[Ratio]]
    flops: NotRequired[Count]
    least_bytes: NotRequired[Count]
    floor_ns: NotRequired[Annotated[float, Field(gt=0, le=MOST_NS)]]
    times_floor: NotRequired[Ratio]


def _timing_document() -> Any:
    """The raw durations of a phase, with the keys of each measure."""
    further = {
        name: NotRequired[kind] for half in measures.harnesses().values() for name, kind in half.of_phase.items()
    }
    make: Any = TypedDict
    document = make("TimingDocument", CoreTimingDocument.__annotations__ | further)
    document.__doc__ = CoreTimingDocument.__doc__
    return document


TimingDocument: Any = _timing_document()


class PeakDocument(TypedDict):
    """A peak's raw durations."""

    work: Size
    passes: Size
    first_call_ns: Duration
    repetitions_ns: Annotated[list[Elapsed], Field(min_length=1)]


class ProbeDocument(TypedDict):
    """A probe's raw durations, by look."""

    looks_ns: Annotated[list[Annotated[list[Elapsed], Field(min_length=1)]], Field(min_length=1)]


class MemoryDocument(TypedDict):
    """A memory cell's bytes."""

    phase: PhaseName
    static_bytes: Bytes
    passes_ns: NotRequired[list[Elapsed]]
    host: NotRequired[dict[Name, Bytes | None]]
    device: NotRequired[dict[Name, Bytes | None]]


class ComparisonDocument(TypedDict):
    """The output of a library's network beside a NIR graph, by snnbench.conformance.comparison."""

    compared: Size
    differing: Count
    first: Annotated[list[Count], Field(min_length=3, max_length=3)] | None
    got: Number | None
    expected: Number | None
    rate: Number | None
    expected_rate: Number | None
    most_spikes: Bytes | None
    cause: str
    differences: list[Annotated[list[str], Field(min_length=2, max_length=2)]]


class SettingsDocument(TypedDict):
    """The settings that are read; a worker may add others."""

    __pydantic_config__ = ConfigDict(extra="allow")  # type: ignore[misc]

    comparison: NotRequired[ComparisonDocument]


class ReplyDocument(TypedDict):
    """A worker's reply, but for its outcome, which snnbench.cases.outcome decodes."""

    checks: dict[Name, CheckDocument]
    settings: SettingsDocument
    phases: dict[PhaseName, TimingDocument]
    memory: MemoryDocument | dict[None, None]
    peaks: dict[Name, PeakDocument]
    probes: dict[Name, ProbeDocument]


class RecordDocument(TypedDict):
    """A line of records.jsonl."""

    __pydantic_config__ = ConfigDict(extra="forbid")  # type: ignore[misc]

    schema: Annotated[int, Field(ge=1)]
    cell: Annotated[str, Field(pattern=r"^[A-Za-z0-9-]{1,64}$")]
    library: Name
    variant: Name
    trial: Count
    measure: Literal["time", "memory", "verify", "import", "export"]
    case: CaseDocument
    outcome: OutcomeDocument
    attempt: NotRequired[Attempt]
    side: NotRequired[Literal["", "base", "new"]]
    version: NotRequired[str | None]
    adapter: NotRequired[Key]
    environment: NotRequired[Key]
    checks: NotRequired[dict[Name, CheckDocument]]
    settings: NotRequired[SettingsDocument]
    phases: NotRequired[dict[PhaseName, TimingDocument]]
    memory: NotRequired[MemoryDocument | dict[None, None]]
    peaks: NotRequired[dict[Name, PeakDocument]]
    probes: NotRequired[dict[Name, ProbeDocument]]
    flags: NotRequired[list[Name]]
    started: NotRequired[str]
    wall_s: NotRequired[Ratio | None]
    log: NotRequired[str]


class ConfigDocument(TypedDict):
    """The keys of config.json that are read; it may be empty."""

    snnbench: NotRequired[str]
    revision: NotRequired[str]
    baseline: NotRequired[str]
    replaced: NotRequired[list[Name]]
    identity: NotRequired[str]
    whole: NotRequired[str]
    machine: NotRequired[str]
    shard: NotRequired[Annotated[str, Field(pattern=r"^[0-9]{1,4}/[0-9]{1,4}$")]]
    shards: NotRequired[list[Annotated[str, Field(pattern=r"^[0-9]{1,4}/[0-9]{1,4}$")]]]
    unfinished: NotRequired[list[Annotated[str, Field(pattern=r"^[0-9]{1,4}/[0-9]{1,4}$")]]]
    finished: NotRequired[bool]
    closed: NotRequired[str]
    planned: NotRequired[Count]
    whole_planned: NotRequired[Count]
    only: NotRequired[list[str] | None]
    sides: NotRequired[dict[Literal["base", "new"], list[str]]]
    stops_early: NotRequired[bool]
    decides: NotRequired["DecidesDocument"]
    config: NotRequired["AskedDocument"]


class DecidesDocument(TypedDict):
    """How the words of an A/B test are decided, in config.json."""

    time_floor: Ratio
    alpha: Annotated[float, Field(gt=0, lt=1)]
    phases: list[PhaseName]
    allowed: list[Literal["contended"]]


class AskedDocument(TypedDict):
    """The resolved config in config.json."""

    name: NotRequired[str]
    analysis: NotRequired[str]
    protocol: NotRequired[dict[str, Any]]
    sweep: NotRequired[list[dict[str, Any]]]


class MachineDocument(TypedDict):
    """The keys of machine.json that are read; it may be empty."""

    model: NotRequired[str]
    host: NotRequired[str]
    hosts: NotRequired[list[str]]
    cpu: NotRequired[dict[str, Any]]
    memory: NotRequired[dict[str, Any]]
    gpus: NotRequired[list[dict[str, Any]]]
    container: NotRequired[str | None]
    image: NotRequired[dict[Name, str] | None]
    environment: NotRequired[dict[str, str]]
    varying: NotRequired[dict[str, list[Any]]]


def _complete(document: RecordDocument) -> RecordDocument:
    """Check rules on more than one field. Raises ValueError."""
    case = document["case"]
    if (case["reset"], case["detach_reset"]) not in PROFILES.values():
        raise ValueError("no profile has this reset")
    for phase, timing in document.get("phases", {}).items():
        if len(FLOOR & timing.keys()) not in (0, len(FLOOR)):
            raise ValueError(f"{phase} has a part of its floor")
    if document.get("memory") and "host" not in document["memory"] and "device" not in document["memory"]:
        raise ValueError("memory of no place")
    for name, check in document.get("checks", {}).items():
        if name.startswith("common-") and not {"rate", "expected_rate", "cosines"} <= check.keys():
            raise ValueError(f"{name} says nothing of the other neuron")
    return document


@cache
def _adapter(name: str) -> TypeAdapter[Any]:
    shapes: dict[str, Any] = {
        "reply": ReplyDocument,
        "record": Annotated[RecordDocument, AfterValidator(_complete)],
        "config": ConfigDocument,
        "machine": MachineDocument,
        "environments": dict[str, dict[str, str]],
    }
    return TypeAdapter(shapes[name])


def complaint(name: str, document: Any) -> str | None:
    """One line on the first error in a reply, record, config, machine or environments; None if it is valid."""
    try:
        _adapter(name).validate_python(document, strict=True)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        keys = map(str, first["loc"])  # a stranger's key may end a line
        where = ".".join(key if key.isprintable() else repr(key) for key in keys)
        return printable(f"{where}: {first['msg']}" if where else str(first["msg"]))[:300]
    return None


def json_schema(name: str) -> dict[str, Any]:
    """The JSON Schema (draft 2020-12) of a reply, record, config, machine or environments.

    It lacks the rules on more than one field.
    """
    return {"$schema": DRAFT, **_adapter(name).json_schema(), "title": f"snnbench {name}"}
