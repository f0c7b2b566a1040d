"""Golden tests of the output of `compare` and `rank` for a small recording pair made by hand.

    python -m tests.cli.test_golden         writes the files anew: review the git diff

The pair has a cell of every word, two cases, a second machine (allowed), and a library of another version.
"""

import csv
import io
import json
import re
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest

from snnbench.analysis.compare import Comparisons, compare
from snnbench.analysis.decision import WORDS, Thresholds
from snnbench.analysis.rank import rank
from snnbench.recording.reading import Recording
from snnbench.recording.record import Record
from snnbench.report.text import change_table, rank_table
from snnbench.report.text.markdown import markdown
from tests.fakes import CASE
from tests.recordings import deviating, failed, recording, skipped, timed, trials, weighed

GOLDEN = Path(__file__).parents[1] / "golden"
LARGE = CASE.with_(neurons=96)
ZERO = CASE.with_(reset="zero", detach_reset=True)
ONE = (0.98, 0.99, 1.0, 1.01, 1.02)
WIDE = (0.8, 0.9, 1.0, 1.1, 1.2)
SUFFIXES = {"csv": "csv", "json": "json", "junit": "xml"}


def scaled(factor: float, times: Iterable[float] = ONE) -> list[float]:
    """These times, multiplied by `factor`."""
    return [round(factor * time, 6) for time in times]


def pair() -> tuple[Recording, Recording]:
    """Base and new."""
    base: list[Record] = [
        *trials("steady", scaled(3), environment="e"),
        *trials("steady", scaled(6), case=LARGE, environment="e"),
        *trials("worse", scaled(2)),
        *trials("better/fast", scaled(4), environment="e"),
        *(weighed("better/fast", host_mib=mib, device_mib=4, trial=trial) for trial, mib in enumerate((6, 6.01))),
        *trials("restless", scaled(5, WIDE)),
        *trials("broken", scaled(1)),
        *trials("gone", scaled(1), case=LARGE),
        *trials("drifted", scaled(1)),
        skipped("narrow", "unsupported", "no such reset"),
    ]
    new: list[Record] = [
        *trials("steady", scaled(3.03), environment="f", version="1.1"),
        *trials("steady", scaled(6), case=LARGE, environment="f", version="1.1"),
        *(timed("worse", trial, train=ms, flags=["contended"]) for trial, ms in enumerate(scaled(2.6))),
        *trials("better/fast", scaled(2), environment="f"),
        *(weighed("better/fast", host_mib=mib, device_mib=5, trial=trial) for trial, mib in enumerate((6, 6.02))),
        *trials("restless", scaled(5.5, WIDE)),
        failed("broken", "crash", "died of SIGSEGV | see the log"),
        *(deviating("drifted", trial=trial, train=ms) for trial, ms in enumerate(ONE)),
        skipped("narrow", "unsupported", "no such reset"),
    ]
    old = replace(recording(*base, name="monday", baseline="steady"), environments={"e": {"torch": "2.12"}})
    other = recording(*new, name="friday", baseline="steady", model="a server")
    return old, replace(other, environments={"f": {"torch": "2.13"}})


def several() -> Recording:
    """The base, with a second profile and a contender that deviates."""
    more = [record for name in ("steady", "worse") for record in trials(name, scaled(1 + len(name)), case=ZERO)]
    base = pair()[0]
    return replace(base, records=[*base.records, *more, deviating("off", train=1.0)])


def compared() -> Comparisons:
    """The comparison of the pair."""
    return compare(*pair(), Thresholds(), allowed=["machine"], explained=True)


def outputs() -> dict[str, str]:
    """Each output, by the name of its file."""
    comparison, ranked = compared(), rank(several(), "", Thresholds())
    texts = {
        f"compare.{SUFFIXES[form]}": write(comparison, ["slower", "failed"])
        for form, write in change_table.FORMATS.items()
    }
    texts |= {f"rank.{SUFFIXES[form]}": write(ranked) for form, write in rank_table.FORMATS.items()}
    reports = {
        "compare": change_table.report(comparison),
        "compare-explain": change_table.report(comparison, explained=True),
        "rank": rank_table.report(ranked),
    }
    return texts | {f"{name}.md": markdown(report) for name, report in reports.items()}


@pytest.mark.parametrize("name", sorted(outputs()))
def test_output_equals_its_golden_file(name: str) -> None:
    assert outputs()[name] == (GOLDEN / name).read_text(encoding="utf-8")


def test_no_golden_file_is_obsolete() -> None:
    assert {path.name for path in GOLDEN.iterdir()} >= outputs().keys()
    assert not {path.name for path in GOLDEN.glob("compare*")} - outputs().keys()
    assert not {path.name for path in GOLDEN.glob("rank*")} - outputs().keys()


def test_pair_has_a_cell_of_every_word() -> None:
    assert all(compared().counts[word] for word in WORDS)


@pytest.mark.parametrize("name", [name for name in outputs() if name.startswith("compare")])
def test_allowed_fact_is_stated_in_every_format(name: str) -> None:
    text = re.sub(r"&apos;|&#39;", "'", outputs()[name])
    assert "machine: 'a laptop' in monday, 'a server' in friday" in text


def test_json_and_csv_have_every_cell_and_no_nan() -> None:
    cells = json.loads(outputs()["compare.json"], parse_constant=pytest.fail)["comparisons"]
    rows = list(csv.DictReader(io.StringIO(outputs()["compare.csv"])))
    assert len(cells) == len(rows) == len(compared().each)
    assert [cell["word"] for cell in cells] == [row["word"] for row in rows]
    assert "nan" not in {value.lower() for row in rows for value in row.values()}


def test_junit_counts_its_cells_and_failures() -> None:
    suite = ElementTree.fromstring(outputs()["compare.xml"])
    counts = compared().counts
    assert int(suite.get("tests", "")) == len(suite.findall("testcase")) == len(compared().each)
    assert int(suite.get("failures", "")) == len(suite.findall("testcase/failure"))
    assert len(suite.findall("testcase/failure")) == counts["slower"] + counts["failed"]
    assert int(suite.get("skipped", "")) == len(suite.findall("testcase/skipped"))
    assert len(suite.findall("testcase/skipped")) == counts["missing"] + counts["incomparable"] + counts["inconclusive"]


if __name__ == "__main__":
    GOLDEN.mkdir(exist_ok=True)
    for name, text in outputs().items():
        (GOLDEN / name).write_text(text, encoding="utf-8")
