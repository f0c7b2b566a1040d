"""Tests that screens with times in the documents are like those of their commands, but for numbers and verdicts."""

import os
import re
import shlex
from pathlib import Path

import pytest

from tests.documents import DOCUMENTS, LIKE, ROOT, saved, written
from tests.screens import screen

WORDS = {
    r"[\d.]+": "0",
    r"[~=▲▼✗✓] |[█▏▎▍▌▋▊▉]+": "",
    r".*(cells measured|0 CPUs, 0 GiB).*": "",
    r"^\S+_quick_\S+: .*": "",
    r"(x floor|exact +0 \(0-0\) +0 +0).*": r"\1",
    r"\b(inconclusive|same|slower|faster)  ": "WORD  ",
    r"DOES NOT OVERLAP|overlaps": "OVERLAPS",
    r"^(not )?reproduced: |^inconclusive: ": "VERDICT: ",
    r", in train(;.*)?$|, disturbed by others.*| \(about .* left\)|  the interval .*|  q is .*|  reason$": "",
    r"^[\w ]+  (load|governor|turbo|threads|CPU quota|memory): .*": r"\1",
    r"^0 cells in .*|^\[0/0\] .*": "",
    r"^(changed since then|waiting for|after 0 trials|0 columns leave out|\s+-> ).*": "",
    r"^(0, 0 threads|input rate 0|rate 0, |threads, seed|all comparisons|0 comparisons).*": "",
    r"^(\(?wider, or piped|shows them|  Reset by subtraction, CPU: |  \(\d|fast_sigmoid).*": "",
}
"""What differs from run to run, and what stands for it: numbers, words of a test, remarks on the machine."""


def shape(screen: str) -> set[str]:
    """The lines of a screen without what differs from run to run."""
    shaped = set()
    for line in screen.splitlines():
        for pattern, other in WORDS.items():
            line = re.sub(pattern, other, line)
        shaped.add(" ".join(line.replace("─", "").split()))
    return shaped - {""}


@pytest.mark.libraries
@pytest.mark.parametrize(
    ("path", "arguments", "text"),
    [(path, *found) for path in DOCUMENTS for found in LIKE.findall(written(path))],
    ids=[f"{path.stem}: {found[0]}" for path in DOCUMENTS for found in LIKE.findall(written(path))],
)
def test_screen_with_times_is_like_that_of_its_command(tmp_path: Path, path: Path, arguments: str, text: str) -> None:
    for name, code in saved(path).items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(code)
    (tmp_path / "results").symlink_to(ROOT / "results")
    (tmp_path / "home").symlink_to(os.environ["SNNBENCH_HOME"])
    few = {"ab": ["--trials", "4", "-o", "ab"], "run": ["-o", "run"], "show": ["--trials", "2"]}
    words = [*shlex.split(arguments), *few.get(arguments.split()[0], [])]
    shown = screen(tmp_path, 110, *words, timeout_s=600, UV_OFFLINE="0")
    lacking = shape(text) - shape(shown.text)
    assert not lacking, shown.text
