"""The table of run-to-run noise, by device and phase."""

from collections.abc import Sequence

from snnbench.analysis.noise import Noise, by_chance, detectable
from snnbench.report.section import Table
from snnbench.report.text.table import markdown

COUNTS = (3, 5, 10)
"""The numbers of trials that the table has columns for."""


def table(noise: Noise, counts: Sequence[int] = COUNTS) -> str:
    """The spreads in Markdown."""
    return markdown(spreads(noise, counts))


def spreads(noise: Noise, counts: Sequence[int] = COUNTS) -> Table:
    """Spread between trials, run-to-run difference and detectable change for numbers of trials, by device and phase."""
    columns = ["phase", "spread between trials"]
    columns += [f"{what} with {count} trials" for what in ("by chance", "detectable") for count in counts]
    rows = []
    for timed, spread in noise.spreads.items():
        shares = [spread, *(size(spread, count) for size in (by_chance, detectable) for count in counts)]
        rows.append([timed, *(f"{share:.1%}" for share in shares)])
    return Table(columns, rows)
