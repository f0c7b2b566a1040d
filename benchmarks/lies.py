"""A check that no liar gets a time: one run of all liars, and their outcomes.

    python -m benchmarks lies [--set protocol.trials=1] [--only "neurons=256"] [--output FOLDER]

Runs `snnbench run` with liars.toml, the adapter liars.py and these options. Prints a line for each variant and size.
Exits with 1 if a trial of a liar has a time or `honest` lacks one. If every repetition is a single pass, two liars that
keep little may have a time: each pass is then on new content, and takes its full time.
"""

import argparse
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from pathlib import Path

from benchmarks.outcome import show
from snnbench.recording import reading, record

LIARS = Path(__file__).parent / "liars"
HONEST = "honest"
KEEPING_LITTLE = {"kept-at-random", "kept-in-backward"}


def main() -> int:
    """Run, print, and return 1 if an outcome is wrong."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path, metavar="FOLDER", help="keep the recording in this new folder")
    given, options = parser.parse_known_args()
    with tempfile.TemporaryDirectory() as scratch:
        output = given.output or Path(scratch)
        command = [sys.executable, "-m", "snnbench", "run", "--config", str(LIARS / "liars.toml")]
        command += ["--adapter", str(LIARS / "liars.py"), "--output", str(output), *options]
        subprocess.run(command, check=False, stdout=sys.stderr)  # a run in which cells fail exits with 1
        try:
            records = reading.read(output).records
        except record.RecordingError:
            return 2  # the run printed the reason
    outcomes: dict[tuple[str, int], Counter[str]] = defaultdict(Counter)
    reasons: dict[tuple[str, int], str] = {}
    for entry in records:
        name = entry.variant, int(entry.case.neurons)
        is_on_new_content = all(timing["passes"] == 1 for timing in entry.phases.values())
        verdict = f"{entry.outcome.verdict}{' on new content' * (entry.variant != HONEST and is_on_new_content)}"
        outcomes[name][str(entry.outcome.kind or verdict)] += 1
        reasons[name] = entry.outcome.reason or ""
    wrong, rows = 0, []
    for name in sorted(outcomes, key=lambda name: (name[0] != HONEST, name)):
        expected = {"exact"} if name[0] == HONEST else {"incorrect"}
        allowed = expected | ({"exact on new content"} if name[0] in KEEPING_LITTLE else set())
        as_expected = set(outcomes[name]) <= allowed
        wrong += not as_expected
        counts = ", ".join(f"{count} {outcome}" for outcome, count in outcomes[name].items())
        rows.append((f"{name[0]} N={name[1]}", "yes" if as_expected else "NO", f"{counts}; {reasons[name]}"))
    title = f"Variants that leave out work: {len(outcomes) - wrong} of {len(outcomes)} end as they must"
    show(title, ("variant", "as it must", "outcomes"), rows)
    return int(wrong > 0 or not outcomes)
