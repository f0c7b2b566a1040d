"""Axes of cases that a user gives in place of a config's, and the workload that an axis implies."""

from collections.abc import Mapping, Sequence
from typing import Any

from snnbench import workloads
from snnbench.cases.case import PROFILES
from snnbench.plan.axes import PROFILE, listed, types, whole
from snnbench.plan.config_file import ConfigError, Document, Location
from snnbench.suggestions import unknown

AXES = {"time_steps": "steps", "widths": "neurons", "graph": "nir", "input_rate": "input-rate"}
"""Axis -> its option of a command line; the others have the same name."""


def with_axes(document: Document, axes: Mapping[str, Sequence[Any]]) -> Document:
    """The document with these values in every sweep that has such an axis. Raises ConfigError.

    An axis of `--set` that implies a workload counts, too. Such an axis comes first: others are of that workload.
    """
    given = {**_implying(document), **axes}
    for axis, values in sorted(given.items(), key=lambda each: each[0] not in _implied()):
        if axis in _implied():
            document = _of_workload(document, axis, values)
        else:
            document = _of_profiles(document, values) if axis == PROFILE else _along(document, axis, values)
    return document


def workload_of(sweep: Any) -> str:
    """The workload that a sweep's table names or an axis of it implies, or the default."""
    given = sweep if isinstance(sweep, dict) else {}
    implied = (name for axis, name in _implied().items() if axis in given)
    name = given.get("workload", next(implied, workloads.DEFAULT))
    return name if isinstance(name, str) and name in workloads.WORKLOADS else workloads.DEFAULT


def _implied() -> dict[str, str]:
    """Axis -> the workload that it implies."""
    return {each.IMPLIED_BY: name for name, each in workloads.WORKLOADS.items() if each.IMPLIED_BY}


def _implying(document: Document) -> dict[str, list[Any]]:
    """The axes of `--set` that imply a workload."""
    given = {axis: document.tables["case"][axis] for axis in _implied() if ("case", axis) in document.settings}
    return {axis: whole(values) if isinstance(values, list) else [values] for axis, values in given.items()}


def _of_workload(document: Document, axis: str, values: Sequence[Any]) -> Document:
    """The document with this axis, and the workload that it implies, in every sweep of the usual workload.

    The axis takes the place of those that this workload does not have.
    """
    name, tables = _implied()[axis], document.tables
    option = document.settings.get(("case", axis), f"--{AXES.get(axis, axis)}")
    kept, known = types(name), {each for workload in workloads.WORKLOADS for each in types(workload)}

    def changed(sweep: dict[str, Any]) -> dict[str, Any]:
        if workload_of({**tables["case"], **sweep}) not in (workloads.DEFAULT, name):
            return sweep
        return {key: value for key, value in sweep.items() if key in kept or key not in known} | {
            axis: list(values),
            "workload": name,
        }

    sweeps = [changed(sweep) for sweep in tables["sweep"]]
    used = {each for sweep in sweeps for each in types(workload_of(sweep))}
    case = {key: value for key, value in tables["case"].items() if (key in used or key not in known) and key != axis}
    settings = document.settings | {("sweep", number, axis): option for number in range(len(sweeps))}
    return Document(document.file, {**tables, "case": case, "sweep": sweeps}, settings)


def _along(document: Document, axis: str, values: Sequence[Any]) -> Document:
    """The document with these values of an axis in every sweep that has it. Raises ConfigError if none has."""
    option, shared, sweeps = f"--{AXES.get(axis, axis)}", document.tables["case"], document.tables["sweep"]
    having = [number for number, sweep in enumerate(sweeps) if axis in types(workload_of({**shared, **sweep}))]
    if not having:
        kinds = ", ".join(sorted({workload_of({**shared, **sweep}) for sweep in sweeps}))
        raise ConfigError(f"{option}: no sweep of {document.file} has it (workload: {kinds})")
    changed = [{**sweep, axis: list(values)} if n in having else sweep for n, sweep in enumerate(sweeps)]
    settings = document.settings | {("sweep", number, axis): option for number in having}
    return Document(document.file, {**document.tables, "sweep": changed}, settings)


def _of_profiles(document: Document, profiles: Sequence[str]) -> Document:
    """The document with those of these profiles that a sweep has, and without a sweep that has none.

    If no sweep has one, all sweeps get these profiles. Raises ConfigError for an unknown profile.
    """
    if wrong := [each for each in profiles if each not in PROFILES]:
        raise ConfigError(f"--{PROFILE}: {unknown('profile', wrong[0], PROFILES)}")
    shared, sweeps = document.tables["case"], document.tables["sweep"]
    own = [[each for each in listed({**shared, **sweep}.get(PROFILE, [])) if each in profiles] for sweep in sweeps]
    if not any(own):
        return _along(document, PROFILE, profiles)
    left = [number for number, of_sweep in enumerate(own) if of_sweep]
    tables = {**document.tables, "sweep": [{**sweeps[number], PROFILE: own[number]} for number in left]}
    settings: dict[Location, str] = {}
    for location, option in document.settings.items():
        match location:
            case ("sweep", int(number), *keys):
                settings |= {("sweep", left.index(number), *keys): option} if number in left else {}
            case _:
                settings[location] = option
    return Document(document.file, tables, settings)
