"""A test of the recurrent layer that the tutorial adds to its adapter."""

import re
from pathlib import Path

from tests.examination import reply_to
from tests.fakes import request
from tests.workloads.test_recurrence import RECURRENT

TEXT = (Path(__file__).parents[3] / "docs" / "tutorials" / "add-your-library.md").read_text(encoding="utf-8")


def block(name: str) -> str:
    """The code of the tutorial between two comments."""
    (found,) = re.findall(rf"<!-- {name}: start -->\n```python\n(.*?)```\n<!-- {name}: end -->", TEXT, re.DOTALL)
    return str(found)


def test_recurrent_layer_of_the_tutorial_is_exact(tmp_path: Path) -> None:
    before, _, _ = block("adapter").partition("def neuron(")
    source = before + block("recurrent")
    outcome = reply_to(tmp_path, source, request("verify", RECURRENT)).outcome
    assert outcome and outcome.verdict == "exact", outcome
    wrong = source.replace("current + own(spike)", "current + own(v)")
    outcome = reply_to(tmp_path, wrong, request("verify", RECURRENT)).outcome
    assert outcome and outcome.kind == "incorrect"
