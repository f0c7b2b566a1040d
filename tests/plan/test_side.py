"""Tests of the sides of an A/B run: allowed changes, their forms, and the contenders that they affect."""

import sys
from pathlib import Path

import pytest

from snnbench.adapter import reading
from snnbench.adapter.declaration import Adapter
from snnbench.plan.side import Side, SideError, contenders, parse
from tests.fakes import CORRECT, write

HEADER = '# /// script\n# dependencies = ["my-lib==1.0", "torch==2.13.0"]\n# ///\n'
OTHER = '# /// script\n# dependencies = ["other==3.0", "torch==2.13.0"]\n# ///\n'


@pytest.fixture
def adapters(tmp_path: Path) -> dict[str, Adapter]:
    """`mine` pins my-lib and torch, `another` pins other and torch."""
    written = {"mine": HEADER + CORRECT, "another": OTHER + CORRECT}
    return {name: reading.read(write(tmp_path, text, name)) for name, text in written.items()}


ALL = [("mine", "default"), ("another", "default")]


def changed(adapters: dict[str, Adapter], *sides: Side, cuda: bool = False) -> list[str]:
    """The libraries that take part."""
    return [library for library, _ in contenders(sides, adapters, ALL, cuda)]


def test_version_replaces_the_pinned_version(adapters: dict[str, Adapter]) -> None:
    side = parse(["My_Lib==1.2"])
    own = side.adapters(adapters)
    assert own["mine"].variants["default"].pins.dependencies == ("My_Lib==1.2", "torch==2.13.0")
    assert own["another"] == adapters["another"]
    assert changed(adapters, Side(), side) == ["mine"]
    assert side.title == "My_Lib==1.2" and Side().title == "as pinned"


def test_framework_version_changes_every_adapter_that_pins_it(adapters: dict[str, Adapter]) -> None:
    side = parse(["torch==2.12.0"])
    assert changed(adapters, side, Side()) == ["mine", "another"]
    assert {one.variants["default"].pins.dependencies[1] for one in side.adapters(adapters).values()} == {
        "torch==2.12.0"
    }


def test_no_change_runs_all_against_themselves(adapters: dict[str, Adapter]) -> None:
    assert changed(adapters, Side(), Side()) == ["mine", "another"]


def test_same_pin_on_both_sides_runs(adapters: dict[str, Adapter]) -> None:
    assert changed(adapters, parse(["other==3.0"]), parse(["other==3.0"])) == ["another"]


def test_adapter_file_replaces_its_namesake(tmp_path: Path, adapters: dict[str, Adapter]) -> None:
    (tmp_path / "new").mkdir()
    path = write(tmp_path / "new", CORRECT.replace("A fake", "A newer fake"), "mine")
    side = parse([str(path)])
    own = side.adapters(adapters)
    assert own["mine"].path == path and own["mine"].digest != adapters["mine"].digest
    assert changed(adapters, Side(), side) == ["mine"]


@pytest.mark.parametrize("text", ["OMP_NUM_THREADS=1", "EMPTY=", "A=b=c"])
def test_variable_changes_every_contender(adapters: dict[str, Adapter], text: str) -> None:
    side = parse([text])
    name, _, value = text.partition("=")
    assert side.variables == {name: value}
    assert changed(adapters, Side(), side) == ["mine", "another"]


def test_interpreter_changes_all_and_stays_a_link(tmp_path: Path, adapters: dict[str, Adapter]) -> None:
    link = tmp_path / "python"
    link.symlink_to(sys.executable)
    side = parse([f"python={link}"])
    assert side.python == link
    assert changed(adapters, side, Side()) == ["mine", "another"]


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("nonsense", "names no version; write nonsense==VERSION"),
        ("my-lib>=1", "names no version; write my-lib==VERSION"),
        ("my-lib==1.*", "names no version; write my-lib==VERSION"),
        ("my lib", "cannot read the change 'my lib'; write LIBRARY==VERSION"),
        ("absent.py", "absent.py: no such file"),
        ("python=/absent/python", "python=/absent/python: no program here"),
        ("=3", "cannot read the change '=3'; write LIBRARY==VERSION"),
    ],
)
def test_malformed_change_is_refused_with_its_syntax(text: str, complaint: str) -> None:
    with pytest.raises(SideError, match=complaint):
        parse([text])


def test_unpinned_library_is_refused_with_suggestions(adapters: dict[str, Adapter]) -> None:
    with pytest.raises(SideError, match=r"my-lbi: no contender of this config pins it.*my-lib"):
        changed(adapters, Side(), parse(["my-lbi==1"]))


def test_requirement_keeps_its_extras_and_marker(tmp_path: Path) -> None:
    header = """# /// script
# dependencies = ["jax[cpu]==1.0 ; python_version > '3'"]
# [tool.snnbench]
# cuda = ["jax[cuda13]==1.0"]
# ///
"""
    adapter = reading.read(write(tmp_path, header + CORRECT, "mine"))
    pins = parse(["jax[fast]==2.0"]).adapters({"mine": adapter})["mine"].variants["default"].pins
    assert pins.dependencies == ('jax[cpu,fast]==2.0; python_version > "3"',)
    assert pins.cuda == ("jax[cuda13,fast]==2.0",)


def test_cuda_only_pin_needs_cuda(tmp_path: Path) -> None:
    header = '# /// script\n# dependencies = ["a==1"]\n# [tool.snnbench]\n# cuda = ["b==1"]\n# ///\n'
    adapters = {"mine": reading.read(write(tmp_path, header + CORRECT, "mine"))}
    of = [("mine", "default")]
    assert contenders([Side(), parse(["b==2"])], adapters, of, cuda=True) == of
    with pytest.raises(SideError, match="b: no contender of this config pins it"):
        contenders([Side(), parse(["b==2"])], adapters, of, cuda=False)


@pytest.mark.parametrize(
    "tool",
    [
        "# [tool.uv]\n# override-dependencies = [\"my-lib ; python_version < '3'\"]\n",
        '# [[tool.uv.dependency-metadata]]\n# name = "my-lib"\n# version = "1.0"\n# requires-dist = []\n',
    ],
)
def test_version_with_hand_written_metadata_is_refused(tmp_path: Path, tool: str) -> None:
    header = f'# /// script\n# dependencies = ["my-lib==1.0"]\n{tool}# ///\n'
    adapter = reading.read(write(tmp_path, header + CORRECT, "mine"))
    with pytest.raises(SideError, match="my-lib: its adapter says by hand what it needs"):
        parse(["my-lib==2.0"]).adapters({"mine": adapter})


@pytest.mark.parametrize("text", ["my-lib=2.0", "My_Lib=2.0", "mine=2.0"])
def test_version_with_one_equals_sign_is_refused(adapters: dict[str, Adapter], text: str) -> None:
    if "-" in text:  # not a variable's name either
        with pytest.raises(SideError, match="cannot read the change"):
            parse([text])
        return
    with pytest.raises(SideError, match=r"is an environment variable; a version is .*==2\.0"):
        changed(adapters, Side(), parse([text]))


def test_adapter_file_without_namesake_is_refused(tmp_path: Path, adapters: dict[str, Adapter]) -> None:
    path = write(tmp_path, CORRECT, "my_mine")
    with pytest.raises(SideError, match="is the adapter 'my-mine' by its name, which this config does not run"):
        changed(adapters, Side(), parse([str(path), "A=1"]))


@pytest.mark.parametrize(
    "name", ["TRITON_CACHE_DIR", "TORCH_EXTENSIONS_DIR", "PYTHONPATH", "CUDA_VISIBLE_DEVICES", "UV_X"]
)
def test_variable_not_passed_to_workers_is_refused(name: str) -> None:
    with pytest.raises(SideError, match=f"^{name}=1: "):
        parse([f"{name}=1"])


@pytest.mark.parametrize(
    "texts", [["A=1", "A=2"], ["lib==1", "LIB==2"], [f"python={sys.executable}", f"python={sys.executable}"]]
)
def test_repeated_change_is_refused(texts: list[str]) -> None:
    with pytest.raises(SideError, match=r"already"):
        parse(texts)
