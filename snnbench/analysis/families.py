"""Families of cases: groups for one chart, or for one fit of growth with a size.

A *setting* is a case without its sizes. A *family* is cases of one setting that differ in one size only.
"""

from collections.abc import Iterable

from snnbench.cases.case import Case

FEWEST_VALUES = 3
"""The fewest values of an axis for a fit with an error."""


def setting(case: Case) -> Case:
    """The case without its sizes."""
    return case.with_(**dict.fromkeys(case.SIZES, 0))


def settings(cases: Iterable[Case]) -> dict[Case, list[Case]]:
    """Cases by setting, each in their order."""
    by_setting: dict[Case, list[Case]] = {}
    for case in cases:
        by_setting.setdefault(setting(case), []).append(case)
    return by_setting


def families(cases: Iterable[Case], axis: str) -> list[list[Case]]:
    """The cases grouped by all but one size, each group by that size; the largest groups first.

    Cases of a workload without this axis are left out, and those whose size is no number.
    """
    by_family: dict[Case, list[Case]] = {}
    for case in cases:
        if not isinstance(getattr(case, axis, None) if axis in case.SIZES else None, int):
            continue
        by_family.setdefault(case.with_(**{axis: 0}), []).append(case)
    ordered = [sorted(group, key=lambda case: size(case, axis)) for group in by_family.values()]
    return sorted(ordered, key=len, reverse=True)


def swept(cases: Iterable[Case], axis: str) -> list[Case]:
    """The largest family along an axis, if it has enough values for a fit; else empty."""
    return next((family for family in families(cases, axis) if len(family) >= FEWEST_VALUES), [])


def size(case: Case, axis: str) -> int:
    """Its size along an axis, which is a number."""
    return int(getattr(case, axis))


def written(case: Case, axis: str) -> str:
    """Its size along an axis, as text."""
    return str(getattr(case, axis))
