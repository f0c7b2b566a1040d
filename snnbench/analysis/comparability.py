"""Comparability: whether two recordings agree enough to divide one by the other, and what else changed.

Work, precision, protocol and machine model must agree. Versions may differ: a comparison is made to compare them.
"""

import shlex
from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Any

from snnbench.adapter.discovery import data_folder
from snnbench.cases.case import Case
from snnbench.exits import Exit, UserError
from snnbench.plan.config import NOT_OF_A_CELL, Protocol
from snnbench.recording.facts import flat
from snnbench.recording.reading import Recording

VOLATILE_FACTS = ("model", "load", "schema")
"""Facts of a machine that do not describe it, or that another line reports."""
FIELDS = {"precision": ("dtype", "precision"), "threads": ("threads",)}
ALLOWABLE = ("machine", "protocol", *FIELDS)
"""Values of --allow: facts of machine and protocol, and these fields of a case."""

Fact = tuple[str, str]
"""(the value of --allow that permits it, the line that says what differs)."""
Key = tuple[Any, ...]


class Incomparable(UserError):
    """Two recordings that must not be compared. The message has a line for each fact, and says what to do."""

    code = Exit.INCOMPARABLE


def matched(base: Recording, new: Recording, allowed: Iterable[str] = ()) -> tuple[dict[Case, Case], list[str]]:
    """(case of `base` -> case of `new` with the same work, facts that differ and were allowed).

    Raises Incomparable if any other fact differs.
    """
    for recording in (base, new):
        if recording.sides:
            raise Incomparable(f"{recording.name}: holds the two sides of an A/B test; compare it alone")
    allowed = set(allowed)
    left_out = {name for kind in allowed & FIELDS.keys() for name in FIELDS[kind]}
    cases, work = _cases(base, new, left_out)
    facts = [*_facts(base, new), *work]
    barring = [(kind, fact) for kind, fact in facts if kind not in allowed]
    if barring:
        raise Incomparable("\n".join([f"{base.name} and {new.name} are not comparable:", *_advised(barring)]))
    return cases, [fact for _, fact in facts]


def changed(base: Recording, new: Recording) -> list[str]:
    """Other changes: snnbench, the machine's software, adapters, and the packages of every library."""
    pairs = [("snnbench", base.version, new.version)]
    old, other = (
        dict(flat({name: value for name, value in recording.machine.items() if name not in VOLATILE_FACTS}))
        for recording in (base, new)
    )
    pairs += [(f"machine {key}", old.get(key), other.get(key)) for key in dict.fromkeys((*old, *other))]
    lines = [f"{name}: {_said(one)} -> {_said(two)}" for name, one, two in pairs if one != two]
    return lines + _libraries(base, new)


def both_at_once(base: Recording, new: Recording) -> str:
    """The `snnbench ab` command that compares the versions of two recordings in one run.

    If no library changed its version, the user fills in the sides.
    """
    old, other = _installed(base), _installed(new)
    sides: dict[str, list[str]] = {"base": [], "new": []}
    for library in sorted(old.keys() & other.keys()):
        before, after = (_own_version(recording, library) for recording in (base, new))
        if before and after and before != after:
            sides["base"].append(f"--base {shlex.quote(before)}")
            sides["new"].append(f"--new {shlex.quote(after)}")
    changes = [*sides["base"], *sides["new"]] or ["--base CHANGE --new CHANGE"]
    config = str(new.resolved.get("name", "CONFIG"))
    if "name" in new.resolved and not (data_folder("configs") / f"{config}.toml").is_file():
        config += ".toml"
    return " ".join(["snnbench ab", f"--config {shlex.quote(config)}", *changes])


def _own_version(recording: Recording, library: str) -> str:
    """`distribution==version` that a library's records ran with; "" if it is unknown or if there are several."""
    ran = {(one.version, one.environment) for one in recording.records if one.library == library and one.version}
    if len({version for version, _ in ran}) != 1:
        return ""
    version, environment = next(iter(ran))
    fitting = [
        package
        for package, number in recording.environments.get(environment, {}).items()
        if number == version and library.split("-")[0] in package.replace("-", "").replace("_", "")
    ]
    return f"{fitting[0] if fitting else library}=={version}"


def _facts(base: Recording, new: Recording) -> Iterator[Fact]:
    models = base.model, new.model
    if models[0] != models[1] or models[0] is None:
        yield "machine", f"machine: {_said(models[0])} in {base.name}, {_said(models[1])} in {new.name}"
    old, other = map(Protocol.completed, (base.protocol, new.protocol))
    for key in dict.fromkeys((*old, *other)):
        if key not in NOT_OF_A_CELL and old.get(key) != other.get(key):
            there = f"{_said(old.get(key))} in {base.name}, {_said(other.get(key))} in {new.name}"
            yield "protocol", f"protocol.{key}: {there}"


def _cases(base: Recording, new: Recording, left_out: set[str]) -> tuple[dict[Case, Case], list[Fact]]:
    """(case of `base` -> case of `new`, facts that differ). The two cases are equal except for the fields left out.

    A field that is left out is a fact if its values differ. If no case matches, the facts say why.
    """
    sides = []
    for recording in (base, new):
        keyed: dict[Key, Case] = {}
        for case in dict.fromkeys(record.case for record in recording.records):
            key = tuple(value for name, value in case.as_dict().items() if name not in left_out)
            if key in keyed:
                names = " and ".join(sorted(left_out))
                raise Incomparable(f"{recording.name}: several cases differ in {names} only: take that out of --allow")
            keyed[key] = case
        sides.append(keyed)
    old, other = sides
    cases = {case: other[key] for key, case in old.items() if key in other}
    if not cases:
        return {}, list(_no_case(base, new, list(old.values()), list(other.values())))
    return cases, [
        (kind, f"{_named(kind, name)}: {one} in {base.name}, {two} in {new.name}")
        for kind, names in FIELDS.items()
        for name in names
        for one, two in dict.fromkeys((getattr(a, name), getattr(b, name)) for a, b in cases.items())
        if one != two
    ]


def _no_case(base: Recording, new: Recording, old: list[Case], other: list[Case]) -> Iterator[Fact]:
    """Why no case of one recording is in the other: fields without a common value, or a general reason."""
    kinds = {name: kind for kind, names in FIELDS.items() for name in names}
    for recording, cases in ((base, old), (new, other)):
        if not cases:
            yield "work", f"work: no record in {recording.name}"
    differs = False
    for name in old[0].names() if old and other else ():
        old_values, new_values = (
            sorted({getattr(case, name, "-") for case in cases}, key=lambda value: (isinstance(value, str), value))
            for cases in (old, other)
        )
        if not {*old_values} & {*new_values}:
            differs = True
            there = f"{', '.join(map(str, old_values))} in {base.name}"
            there += f", {', '.join(map(str, new_values))} in {new.name}"
            kind = kinds.get(name, "work")
            yield kind, f"{_named(kind, name)}: {there}"
    if old and other and not differs:
        yield "work", f"work: no case of {base.name} is in {new.name}"


def _named(kind: str, field: str) -> str:
    return field if field == kind else f"{kind}: {field}"


def _advised(barring: list[Fact]) -> list[str]:
    """A line for each fact, and a last line with advice."""
    kinds = dict.fromkeys(kind for kind, _ in barring)
    lines = [f"  {fact}" for _, fact in barring]
    if all(kind in ALLOWABLE for kind in kinds):
        return [*lines, f"record one as the other was, or insist: --allow {','.join(kinds)}"]
    return [*lines, "record one as the other was; other work cannot be allowed"]


def _libraries(base: Recording, new: Recording) -> list[str]:
    """Changed package versions and edited adapters of the libraries that both recordings have."""
    versions: dict[tuple[str, str, str], list[str]] = defaultdict(list)
    edited = []
    old, other = _installed(base), _installed(new)
    for library in sorted(old.keys() & other.keys()):
        (packages, adapter), (packages_now, adapter_now) = old[library], other[library]
        edited += [f"adapter of {library}: another file"] if adapter != adapter_now else []
        for package in sorted(packages.keys() | packages_now.keys()):
            before, after = packages.get(package, "none"), packages_now.get(package, "none")
            if before != after:
                versions[package, before, after].append(library)
    lines = []
    for (package, before, after), libraries in versions.items():
        whose = "" if libraries == [package] else f" ({', '.join(libraries)})"
        lines.append(f"{package}: {before} -> {after}{whose}")
    return lines + edited


def _installed(recording: Recording) -> dict[str, tuple[dict[str, str], set[str]]]:
    """library -> (version or versions of each package that its records ran with, hashes of its adapter files)."""
    by_library: dict[str, tuple[dict[str, set[str]], set[str]]] = {}
    for library, version, environment, adapter in dict.fromkeys(
        (one.library, one.version, one.environment, one.adapter) for one in recording.records
    ):
        packages, adapters = by_library.setdefault(library, ({}, set()))
        adapters.add(adapter)
        installed = recording.environments.get(environment, {})
        for package, number in {**installed, **({library: version} if version else {})}.items():
            packages.setdefault(package, set()).add(number)
    return {
        library: ({package: ", ".join(sorted(numbers)) for package, numbers in packages.items()}, adapters)
        for library, (packages, adapters) in by_library.items()
    }


def _said(value: Any) -> str:
    return "unknown" if value is None else repr(value) if isinstance(value, str) else str(value)
