"""The backend for torch on a machine without a card: precision, and what is said where there is none."""

import subprocess
import sys

import pytest

torch = pytest.importorskip("torch")

from snnbench.adapter import Unavailable  # noqa: E402
from snnbench.backends.torch import Backend  # noqa: E402
from tests.fakes import CASE  # noqa: E402

READ_BACK = """
import sys, torch
from snnbench.backends.torch import set_precision
set_precision(sys.argv[1])
tf32 = sys.argv[1] == "tf32"
assert torch.get_float32_matmul_precision() == ("high" if tf32 else "highest")
assert torch.backends.cuda.matmul.allow_tf32 is tf32
assert torch.backends.cudnn.allow_tf32 is tf32
with torch.backends.cudnn.flags():
    pass
news = torch.backends.cuda.matmul, torch.backends.cudnn.conv, torch.backends.cudnn.rnn
assert {one.fp32_precision for one in news} == {sys.argv[1]}
"""


@pytest.mark.parametrize("precision", ["ieee", "tf32"])
def test_the_old_switches_and_the_new_say_the_same_precision_and_none_raises(precision: str) -> None:
    subprocess.run([sys.executable, "-c", READ_BACK, precision], check=True)


@pytest.mark.parametrize(
    ("cuda", "said"),
    [(None, "is built without CUDA; install its CUDA build"), ("13.0", "its CUDA 13.0 may need a newer NVIDIA driver")],
)
def test_a_machine_without_a_usable_card_is_unavailable(
    monkeypatch: pytest.MonkeyPatch, cuda: str | None, said: str
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.version, "cuda", cuda)
    with pytest.raises(Unavailable, match=said):
        Backend(CASE.resized(device="cuda"))
