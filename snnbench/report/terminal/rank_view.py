"""The ranking of a recording in a terminal: one table for each case, and means over two cases or more."""

from rich.console import Console
from rich.text import Text

from snnbench.analysis.rank import Mean, Ranked, Ranking
from snnbench.report.section import Table
from snnbench.report.terminal.drawing import draw, note, paragraph
from snnbench.report.text.rank_table import METRICS, one_rank, ranking_table
from snnbench.report.text.table import captions

LEGEND = (
    "rank: {one_rank} of that rank; ratio: {metric} over that of {baseline}",
    "interval: of the ratio; word: the verdict of the test against {baseline}",
)


def show(console: Console, ranked: Ranked) -> None:
    """Print the rankings, the contenders without a rank, and geometric means of ratios over several cases."""
    common, own = captions({ranking.case: None for ranking in ranked.rankings})
    what = f": {METRICS[ranked.metric].plural} over those of {ranked.baseline}"
    console.print(Text.assemble((ranked.recording, "bold"), what))
    note(console, f"all cases: {common}")
    for fact in [*([ranked.lacking] if ranked.lacking else []), *(f"allowed: {fact}" for fact in ranked.allowed)]:
        note(console, fact)
    tables = [
        (_heading(one, own[one.case]), ranking_table(one, ranked.baseline, ranked.metric))
        for one in ranked.rankings
        if one.entries
    ]
    names = {"baseline": ranked.baseline, "metric": ranked.metric, "one_rank": one_rank(ranked.metric)}
    draw(console, tables, [line.format(**names) for line in LEGEND] if tables else ())
    _show_apart(console, ranked.rankings)
    means = [mean for mean in ranked.means if mean.cases > 1 and mean.ratios]
    draw(console, [(_mean_heading(mean), _mean_table(mean)) for mean in means])


def _heading(ranking: Ranking, case: str) -> str:
    return ", ".join(part for part in (ranking.phase, case) if part)


def _show_apart(console: Console, rankings: list[Ranking]) -> None:
    """The reason of each contender without a rank once, however many tables it is missing from."""
    reasons = dict.fromkeys(pair for ranking in rankings for pair in ranking.apart)
    if reasons:
        console.print(Text("\nnot ranked", style="bold"))
    for name, reason in reasons:
        paragraph(console, Text.assemble((f"{name}: ", "bold"), reason), indent=2)


def _mean_heading(mean: Mean) -> str:
    return f"geometric mean of ratios: {mean.phase}, {', '.join(mean.of)}, {mean.cases} of {mean.known} cases"


def _mean_table(mean: Mean) -> Table:
    rows = [(name, f"{ratio:.3f}") for name, ratio in sorted(mean.ratios.items(), key=lambda item: item[1])]
    return Table(("library", "ratio"), rows, bars="ratio")
