"""A check that no liar gains by its lies: one run of all liars, and their outcomes.

    python -m benchmarks lies [--set protocol.trials=1] [--only "neurons=256"] [--output FOLDER]

Runs `snnbench run` with liars.toml, the adapters beside it and these options. Prints a line for each variant and case,
with the largest gain of its trials with a time: how many times as fast as the median trial of `honest` it is, in its
fastest phase. Exits with 1 if `honest` lacks a time, or if a liar crashes or gains more than GAIN.
"""

import argparse
import subprocess
import sys
import tempfile
from collections import defaultdict
from math import inf
from pathlib import Path
from statistics import median

from benchmarks.outcome import show
from snnbench.recording import reading, record
from snnbench.report.wording import title
from snnbench.worker.durations import median_ns

LIARS = Path(__file__).parent / "liars"
HONEST = "honest"
CAUGHT = ("incorrect", "below-floor")
"""A liar that crashes shows nothing."""
GAIN = 1.5
"""A gain up to this is no gain: the trials of `honest` differ by about as much."""


def main() -> int:
    """Run, print, and return 1 if an outcome is wrong."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path, metavar="FOLDER", help="keep the recording in this new folder")
    given, options = parser.parse_known_args()
    with tempfile.TemporaryDirectory() as scratch:
        output = given.output or Path(scratch)
        command = [sys.executable, "-m", "snnbench", "run", "--config", str(LIARS / "liars.toml")]
        command += [f"--adapter={path}" for path in sorted(LIARS.glob("*.py"))]
        command += ["--output", str(output), *options]
        subprocess.run(command, check=False, stdout=sys.stderr)  # a run in which cells fail exits with 1
        try:
            records = reading.read(output).records
        except record.RecordingError:
            return 2  # the run printed the reason
    by_name: dict[tuple[str, str, str], list[record.Record]] = defaultdict(list)
    for entry in records:
        if entry.status != "skipped":  # it is no lie in this case
            by_name[title(entry.case), entry.library, entry.variant].append(entry)
    wrong, rows = 0, []
    for (case, library, variant), trials in by_name.items():
        timed = [trial for trial in trials if trial.phases]
        honest = [trial for trial in by_name[case, library, HONEST] if trial.phases]
        caught = sum(trial.outcome.kind in CAUGHT for trial in trials)
        gain = max((_gain(trial, honest) if honest else inf for trial in timed), default=0.0)
        liar_as_expected = len(timed) + caught == len(trials) and gain <= GAIN
        as_expected = len(timed) == len(trials) if variant == HONEST else liar_as_expected
        wrong += not as_expected
        reason = next((trial.outcome.reason or "" for trial in trials if not trial.phases), "")
        name = f"{library}/{variant}, {case.partition(' (')[0]}"
        rows.append((name, "yes" if as_expected else "NO", f"{caught} of {len(trials)}", f"{gain:.3g}", reason))
    heading = f"Variants that leave out work: {len(rows) - wrong} of {len(rows)} end as they must"
    show(heading, ("variant", "as it must", "caught", "gain", "reason"), rows)
    return int(wrong > 0 or not rows)


def _gain(liar: record.Record, honest: list[record.Record]) -> float:
    """How many times as fast as the median trial of `honest` a trial is, in the phase where that is most."""
    usual = {phase: median(median_ns(trial.phases[phase]) for trial in honest) for phase in liar.phases}
    return max(usual[phase] / median_ns(timing) for phase, timing in liar.phases.items())
