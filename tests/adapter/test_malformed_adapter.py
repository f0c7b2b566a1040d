"""Tests of malformed adapter files: each is refused in one line."""

from pathlib import Path

import pytest

from snnbench.adapter.reading import read
from snnbench.adapter.refusal import AdapterError
from snnbench.cases.case import PROFILES
from tests.adapter.test_adapter import BUILD, refusal


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("BACKEND = 'numpy'", "no function neuron(case, variant), and no build(case, weights, variant)"),
        (BUILD, 'no BACKEND = "torch", "jax" or "numpy"'),
        (f"BACKEND = 'tensorflow'{BUILD}", 'BACKEND: \'tensorflow\' should be "torch", "jax" or "numpy"'),
        (f"BACKEND = 'numpy'\nORDER = 'TBX'{BUILD}", "ORDER: 'TBX' should be the letters of \"TBN\""),
        (f"BACKEND = 'numpy'\nLATENCY = -1{BUILD}", "LATENCY: -1 should be a number of steps"),
        (f"BACKEND = 'numpy'\nDEVIATION = True{BUILD}", "DEVIATION: True should be a sentence"),
        (f"BACKEND = 'numpy'\nVARIANTS = ['a']{BUILD}", 'VARIANTS: expected {"name": "description"}'),
        (
            f"BACKEND = {{'a': 'numpy'}}\nVARIANTS = {{'a': 'x', 'b': 'y'}}{BUILD}",
            "BACKEND: 'b' should stand in both VARIANTS and BACKEND, or in neither",
        ),
        (
            f"BACKEND = 'numpy'\nDEVIATION = {{'b': 'late'}}{BUILD}",
            "DEVIATION: 'b' should stand in both VARIANTS and DEVIATION, or in neither",
        ),
        (
            f"BACKEND = 'numpy'\nDEVICES = ('cpu', 'tpu'){BUILD}",
            "DEVICES: ('cpu', 'tpu') should be a tuple of \"cpu\" and \"cuda\"",
        ),
        (
            f"BACKEND = 'numpy'\nEXACT = 'zero'{BUILD}",
            f"EXACT: 'zero' should be a tuple of profiles ({', '.join(PROFILES)})",
        ),
        (f"BACKEND = 'numpy'\nPROVIDER = '('{BUILD}", "PROVIDER: '(' should be a tuple of regular expressions"),
        (
            f"BACKEND = 'numpy'\nWAYS = ('compile',){BUILD}",
            "WAYS: ('compile',) should be a tuple of compile, cuda-graph, amp, of a BACKEND \"torch\"; "
            "or {one of them: a variant}",
        ),
        (
            f"BACKEND = 'torch'\nWAYS = ('compiled',){BUILD}",
            "WAYS: ('compiled',) should be a tuple of compile, cuda-graph, amp, of a BACKEND \"torch\"; "
            "or {one of them: a variant}",
        ),
        (
            f"# /// script\n# [tool.snnbench.variants.b]\n# ///\nBACKEND = 'numpy'{BUILD}",
            "script header: [tool.snnbench.variants.b] is not in VARIANTS",
        ),
        *(
            (f"# /// script\n# {text}\n# ///\nBACKEND = 'torch'{BUILD}", f"script header: {reason}")
            for text, reason in {
                "dependencies = [1]": "dependencies = [1] should be a list of strings",
                'dependencies = "norse"': "dependencies = 'norse' should be a list of strings",
                "requires-python = 3": "requires-python = 3 should be a string",
                "tool = 3": "tool = 3 should be a table",
                'tool.snnbench.variants.default = "x"': "default = 'x' should be a table",
                "tool.snnbench.api = 3": "api = 3: this snnbench has version 2 of the interface",
                'tool.snnbench.modules = "kernels"': "modules = 'kernels' should be a list of strings",
                'tool.uv.dependency-metadata.name = "x"': "dependency-metadata should be tables [[...]] of strings and "
                "lists of strings",
            }.items()
        ),
        (
            f"BACKEND = 'torch'\nWAYS = 3{BUILD}",
            'WAYS: 3 should be a tuple of compile, cuda-graph, amp, of a BACKEND "torch"; or {one of them: a variant}',
        ),
        (
            f"BACKEND = 'torch'\nDEVICES = (['cpu'],){BUILD}",
            'DEVICES: ([\'cpu\'],) should be a tuple of "cpu" and "cuda"',
        ),
        ("def build(:", "invalid syntax (<unknown>, line 1)"),
        ("BACKEND = 'numpy'\0", "source code string cannot contain null bytes"),
        (
            f"# /// script\n# dependencies = [\n# ///\nBACKEND = 'numpy'{BUILD}",
            "script header: Invalid value (at end of document)",
        ),
    ],
)
def test_malformed_adapter_is_refused_in_one_line(tmp_path: Path, source: str, reason: str) -> None:
    assert refusal(tmp_path, source) == reason


def test_missing_or_binary_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(AdapterError, match=r"none\.py: .*No such file"):
        read(tmp_path / "none.py")
    (tmp_path / "bytes.py").write_bytes(b"\xff\xfe")
    with pytest.raises(AdapterError, match=r"bytes\.py: 'utf-8' codec can't decode"):
        read(tmp_path / "bytes.py")


@pytest.mark.parametrize("name", ["my lif", "lif=1", "lif(1)", "_lif", "lifé", "x" * 101, "lif\n"])
def test_name_that_no_recording_can_hold_is_refused(tmp_path: Path, name: str) -> None:
    """It was measured, and its records were lost."""
    whole = f"BACKEND = 'numpy'{BUILD}"
    (tmp_path / f"{name}.py").write_text(whole)
    with pytest.raises(AdapterError, match="letters a to z"):
        read(tmp_path / f"{name}.py")
    assert "letters a to z" in refusal(tmp_path, f"VARIANTS = {{{name!r}: 'x'}}\n{whole}")
