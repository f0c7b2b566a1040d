"""Axes: the values that make up the cases of a sweep, one model for each workload.

The annotations of a workload's case are its axes, with a profile in place of the pair (reset, detach_reset). So a field
of a case is an axis of its configs at once.
"""

from collections.abc import Callable, Iterator
from dataclasses import fields
from functools import partial
from itertools import product
from math import prod
from typing import Annotated, Any, ClassVar, Literal, TypeVar, get_args, get_origin, get_type_hints

from pydantic import AfterValidator, BaseModel, BeforeValidator, Field, StrictBool
from pydantic_core import PydanticCustomError, PydanticKnownError

from snnbench import workloads
from snnbench.cases.case import PROFILES, Bounds, Case, File, Joined, Words

PROFILE = "profile"
PAIR = ("reset", "detach_reset")
"""The fields of a case that a profile stands for."""
DEVICES = Literal["cpu", "cuda"]


def listed(value: Any) -> Any:
    """The value in a list, unless it is one."""
    return value if isinstance(value, list | tuple) else [value]


def _filled(value: Any) -> Any:
    values = listed(value)
    if not values:
        raise PydanticCustomError("empty", "is an empty list: it holds no value")
    return values


def _profile(name: str) -> str:
    if name not in PROFILES:
        raise PydanticKnownError("literal_error", {"expected": ", ".join(map(repr, PROFILES))})
    return name


T = TypeVar("T")
Axis = Annotated[tuple[T, ...], BeforeValidator(_filled)]
Profile = Annotated[str, AfterValidator(_profile)]


class Axes(BaseModel, frozen=True, extra="forbid"):
    """The values that make up the cases of one workload; a model of each workload has its axes as fields."""

    CASE: ClassVar[Callable[..., Case]]
    AXES: ClassVar[tuple[str, ...]]

    @property
    def count(self) -> int:
        """The number of cases."""
        return prod(len(getattr(self, name)) for name in self.AXES)

    def cases(self) -> Iterator[Case]:
        """The product of the axes, in the order of a case's fields; the last varies fastest."""
        names = self.AXES[1:]
        for profile, *values in product(*(getattr(self, name) for name in self.AXES)):
            reset, detach_reset = PROFILES[profile]
            yield self.CASE(reset=reset, detach_reset=detach_reset, **dict(zip(names, values, strict=True)))


def types(workload: str) -> dict[str, Any]:
    """The type of a single value on each axis of a workload, as pydantic checks it; the profile is the first."""
    case = workloads.WORKLOADS[workload].Case
    hints = get_type_hints(case, include_extras=True)
    named = {name: _checked(name, hints[name]) for name in case.names() if name not in ("workload", *PAIR)}
    return {PROFILE: Profile, **named}


def fields_of(workload: str) -> dict[str, Any]:
    """The fields of a model of a workload's axes: a value or a list for each."""
    case = workloads.WORKLOADS[workload].Case
    later = {each.name: (each.default,) for each in fields(case) if each.name in case.LATER}
    return {name: (_axis(name, kind, workload), later.get(name, ...)) for name, kind in types(workload).items()}


def _axis(name: str, kind: Any, workload: str) -> Any:
    """An axis of such values. Where a value is a list of numbers or words, one such list is one value."""
    _, *metadata = get_args(get_type_hints(workloads.WORKLOADS[workload].Case, include_extras=True).get(name)) or [None]
    joined = any(isinstance(each, Joined | Words) for each in metadata)
    return Annotated[Axis[kind], BeforeValidator(whole)] if joined else Axis[kind]


def whole(value: Any) -> Any:
    """The value in a list, if it is a list of parts of one value: [700, "256R", 20] or ["beta", "threshold"]."""
    is_one = (
        isinstance(value, list | tuple) and value and all("-" not in str(each) and each != "none" for each in value)
    )
    is_one = is_one and not any(isinstance(each, list | tuple) for each in value)
    return [value] if is_one else value


def _joined(value: Any, joined: Joined) -> str:
    """Numbers joined by hyphens, of a list or of such a text."""
    first, *others = map(str, value) if isinstance(value, list | tuple) else str(value).split("-")
    low, high = int(joined.bounds.low), int(joined.bounds.high)
    plain = [first, *(each.removesuffix(joined.mark) for each in others)]
    try:
        within = [low <= int(number) <= high and str(int(number)) == number for number in plain]
    except ValueError:
        within = []
    if not (all(within) and joined.fewest <= len(within) <= joined.most):
        expected = f"should be {joined.fewest} to {joined.most} numbers from {low} to {high}, such as 784-1000-10"
        raise PydanticCustomError("joined", f"{expected} or, with a recurrent layer, 700-256{joined.mark}-20")
    return "-".join([first, *others])


def _of_file(value: Any, ends: str) -> str:
    """The text of a graph, or of the graph in the file of this name."""
    from snnbench.plan import graph_files

    if not isinstance(value, str):
        raise PydanticCustomError("file", f"should be the name of a file that ends in {ends}")
    try:
        return graph_files.text(value)
    except ValueError as error:
        reason = str(error).removeprefix(f"{value}: ")
        raise PydanticCustomError("file", "{reason}", {"reason": reason}) from error


def _worded(value: Any, words: Words) -> str:
    """Words joined by hyphens, of a list or of such a text."""
    given = list(map(str, value)) if isinstance(value, list | tuple) else str(value).split("-")
    if given in ([], ["none"]):
        return "none"
    if len(set(given)) < len(given) or not set(given) <= set(words.known):
        known = ", ".join(map(repr, words.known))
        raise PydanticCustomError("words", f'should be "none", or a list of some of {known}')
    return "-".join(word for word in words.known if word in given)


def _checked(name: str, hint: Any) -> Any:
    """The type of a value with the checks of its annotation.

    Numbers are strict, because "16", 16.5 and true are mistakes here, not numbers of neurons.
    """
    if name == "device":
        return DEVICES
    if hint is bool:
        return StrictBool
    if get_origin(hint) is not Annotated:
        return hint
    kind, bounds = get_args(hint)
    if isinstance(bounds, File):
        return Annotated[kind, BeforeValidator(partial(_of_file, ends=bounds.ends))]
    if isinstance(bounds, Joined):
        return Annotated[kind, BeforeValidator(partial(_joined, joined=bounds))]
    if isinstance(bounds, Words):
        return Annotated[kind, BeforeValidator(partial(_worded, words=bounds))]
    if not isinstance(bounds, Bounds):
        raise TypeError(f"{name}: {bounds!r} should be Bounds")
    settings: dict[str, Any] = {"gt" if bounds.above else "ge": bounds.low, "le": bounds.high, "strict": True}
    if kind is float:
        settings["allow_inf_nan"] = False
    return Annotated[kind, Field(**settings)]
