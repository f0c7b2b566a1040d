"""Tests of mutants: the edits of a source, and that each module's suites exist."""

from tests.mutants.__main__ import ROOT, path_of
from tests.mutants.edits import edits
from tests.mutants.suites import SUITES, WEIGHTS


def changes(source: str) -> set[str]:
    """The descriptions of a source's edits."""
    return {edit.change for edit in edits(source)}


def test_edit_of_each_kind() -> None:
    assert changes("x = a < b") == {"a < b -> (a <= b)", "a < b -> (a >= b)"}
    assert changes("x = a + b") == {"a + b -> (a - b)", "a + b -> a", "a + b -> b"}
    assert changes("x = a and b") == {"a and b -> (a or b)", "a and b -> a", "a and b -> b"}
    assert changes("x = 3") == {"3 -> 4", "3 -> 2", "3 -> 6"}
    assert changes("x = True") == {"True -> False"}
    assert changes("x = not a") == {"not a -> a"}
    assert changes("x = min(a)") == {"min(a) -> max(a)"}
    assert changes("x = np.abs(a)") == {"np.abs(a) -> a"}
    assert changes("x = a, b") == {"a, b -> (b,)", "a, b -> (a,)"}
    assert changes("x = b if a else c") == {"b if a else c -> b", "b if a else c -> c"}
    assert changes("x = [a for a in b if c]") == {"c -> True", "c -> (not c)"}
    assert changes("if a:\n    b()") == {"a -> (not a)", "a -> False", "b() -> pass"}
    assert changes("a += b") == {"a += b -> a = b", "a += b -> pass"}
    assert changes("def f():\n    return a") == {"return a -> return None"}
    assert changes("raise a") == {"raise a -> pass"}


def test_docstrings_types_and_imports_have_no_edits() -> None:
    assert changes('"""Says 1 + 1."""\nfrom a import b\nx = f"{a + 1} of {b < 2}"') == set()
    assert changes("@dataclass(frozen=True)\nclass A:\n    a: tuple[int, str] | None\n    b: Literal[1]") == set()
    assert changes("Array = Floats | float\nFact = tuple[str, str]") == set()
    assert changes("def f(a: int = b) -> Literal[1]: ...") == set()


def test_edit_changes_only_its_own_source() -> None:
    source = "é = 1\nif a(\n    é < 2\n):\n    b()\n"
    (edit,) = (one for one in edits(source) if one.change == "é < 2 -> (é >= 2)")
    assert (edit.line, edit.source) == (3, "é < 2")
    assert edit.applied(source) == "é = 1\nif a(\n    (é >= 2)\n):\n    b()\n"


def test_every_suite_has_existing_modules_and_tests() -> None:
    assert WEIGHTS.keys() <= SUITES.keys()
    for module, suite in SUITES.items():
        assert (ROOT / "snnbench" / f"{module}.py").is_file()
        assert all((ROOT / "tests" / path_of(name)).is_file() for name in suite)
