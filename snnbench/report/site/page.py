"""A page of the site as data, and the parts that several pages have."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from snnbench.cases.case import PROFILES
from snnbench.report.section import Section
from snnbench.report.site.catalogue import Entry

EQUATIONS = """\
i[t] = W x[t] + b                      the linear layer
u[t] = beta * v[t-1] + i[t]            the membrane potential
s[t] = 1 where u[t] >= threshold       the spike; 0 elsewhere
v[t] = u[t] - threshold * s[t]         reset "subtract"
v[t] = u[t] * (1 - s[t])               reset "zero"
v[t] = u[t]                            reset "none"
ds/du = surrogate(u - threshold)       in the backward pass"""
"""The neuron of a case. Its profiles say which reset it has, and whether the gradient passes through it."""


@dataclass(frozen=True, slots=True)
class Page:
    """A page: its address in the site without `.html`, its title, its sections, and the results that it shows.

    `folded` names the sections that a reader unfolds.
    """

    address: str
    title: str
    sections: Sequence[Section]
    entries: Sequence[Entry] = ()
    folded: Collection[str] = ()

    @property
    def root(self) -> str:
        """The way from this page to the first one."""
        return "../" * self.address.count("/")


def neuron() -> Section:
    """The equations of the neuron, and the profiles."""
    profiles = [
        f"{name}: reset {reset}, "
        + ("without a gradient through the reset" if detached else "with the gradient through the reset")
        for name, (reset, detached) in PROFILES.items()
        if reset != "none"
    ]
    return Section("neuron", "The neuron", text=EQUATIONS, remarks=profiles)


def files(name: str) -> list[tuple[str, str]]:
    """(name, address) of the tidy data beside a page of this name."""
    return [("JSON", f"{name}.json"), ("Parquet", f"{name}.parquet")]
