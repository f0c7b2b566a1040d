"""A check that no liar gets a time: one run of all liars, and their outcomes.

    python benchmarks/liars/run.py [--set protocol.trials=1] [--only "neurons=256"] [--output FOLDER]

Runs `snnbench run` with liars.toml, the adapter liars.py and these options. Prints a line for each variant and size.
Exits with 1 if a trial of a liar has a time or `honest` lacks one. If every repetition is a single pass, two liars that
keep little may have a time: each pass is then on new content, and takes its full time.
"""

import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from pathlib import Path

from snnbench.recording import reading, record

HERE = Path(__file__).parent
HONEST = "honest"
KEEPING_LITTLE = {"kept-at-random", "kept-in-backward"}


def main() -> int:
    """Run, print, and return 1 if an outcome is wrong."""
    options = sys.argv[1:]
    with tempfile.TemporaryDirectory() as scratch:
        if "--output" not in options:
            options += ["--output", scratch]
        command = [sys.executable, "-m", "snnbench", "run", "--config", str(HERE / "liars.toml")]
        command += ["--adapter", str(HERE / "liars.py"), *options]
        subprocess.run(command, check=False, stdout=sys.stderr)  # a run in which cells fail exits with 1
        try:
            records = reading.read(Path(options[options.index("--output") + 1])).records
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
    wrong = 0
    for name in sorted(outcomes, key=lambda name: (name[0] != HONEST, name)):
        expected = {"exact"} if name[0] == HONEST else {"incorrect"}
        allowed = expected | ({"exact on new content"} if name[0] in KEEPING_LITTLE else set())
        as_expected = set(outcomes[name]) <= allowed
        wrong += not as_expected
        counts = ", ".join(f"{count} {outcome}" for outcome, count in outcomes[name].items())
        print(f"{'' if as_expected else 'WRONG '}{name[0]} N={name[1]}: {counts}; {reasons[name]}")
    print(f"{len(outcomes) - wrong} of {len(outcomes)} as they must be")
    return int(wrong > 0 or not outcomes)


if __name__ == "__main__":
    sys.exit(main())
