"""Tests of the package's layers: imports only point down, the worker's side stays lean, the core names no library."""

import ast
import re
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "snnbench"

WORKER_SIDE = (
    *("ground", "cases", "adapter", "datasets", "workloads", "kernels", "backends", "backends.jax", "backends.torch"),
    *("feeding", "proof", "conformance", "measures", "worker", "measures.worker"),
)
"""Packages from which a worker imports."""
FROM_THE_BOTTOM_UP = (
    *WORKER_SIDE,
    *(
        "measures.harness",
        "machine",
        "environments",
        "code",
        "plan",
        "recording",
        "analysis",
        "checking",
        "run",
        "run.slurm",
    ),
    *("report", "report.text", "report.terminal", "report.charts", "measures.report"),
    *("report.page", "report.site", "cli", "__main__"),
)
"""A package imports from itself and from packages before it. `ground` is the modules directly in snnbench/.

The halves of all measures are layers: `measures.worker` is each measures/NAME/worker.py.
"""
HALVES = {"worker": "worker", "levels": "worker", "harness": "harness"}
"""The halves of a measure by the names of their modules; all others are of the report."""
MOST_IN_GROUND = 8

FRAMEWORKS = {
    **{"backends.torch": {"torch"}, "kernels": {"torch"}, "backends.jax": {"jax"}, "datasets": {"h5py"}},
    **{"kernels.lif_cuda": {"cuda"}, "kernels.lif_triton": {"triton"}, "conformance.graph": {"h5py"}},
    **{"feeding.epoch": {"torch"}, "feeding.feed": {"torch", "tonic"}, "feeding.samples": {"tonic"}},
}
"""What a module of the worker's side may import beside NumPy: the frameworks of its package, and its own."""


def name_of(path: Path) -> str:
    """`backends.torch` for snnbench/backends/torch.py; `snnbench` for the package itself."""
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return ".".join(part for part in parts if part != "__init__") or "snnbench"


MODULES = {name_of(path): path for path in sorted(PACKAGE.rglob("*.py")) if "data" not in path.parts}


def package_of(module: str) -> str:
    """The package of a module, by its folder."""
    folder = ".".join(MODULES[module].parent.relative_to(PACKAGE).parts)
    if module.startswith("measures.") and folder != "measures":
        return f"measures.{HALVES.get(module.split('.')[-1], 'report') if module != folder else 'worker'}"
    return folder or ("__main__" if module == "__main__" else "ground")


@cache
def tree(module: str) -> ast.Module:
    """The module's syntax tree."""
    return ast.parse(MODULES[module].read_text(encoding="utf-8"))


@cache
def imported(module: str) -> tuple[set[str], set[str]]:
    """All imports of a module: (modules of the package, top-level names of other modules)."""
    inside, outside = set(), set()
    for node in ast.walk(tree(module)):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, f"{MODULES[module]}:{node.lineno}: a relative import"
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        else:
            continue
        for name in names:
            top, _, rest = name.partition(".")
            if top != "snnbench":
                outside.add(top)
            else:
                inside.add(rest if rest in MODULES else rest.rpartition(".")[0] or "snnbench")  # or a name in a module
    return inside, outside


@cache
def arrows() -> dict[tuple[str, str], list[str]]:
    """(importing package, imported package) -> the imports, `module -> module`."""
    imports: dict[tuple[str, str], list[str]] = {}
    for module in MODULES:
        for other in sorted(imported(module)[0]):
            if package_of(module) != package_of(other):
                imports.setdefault((package_of(module), package_of(other)), []).append(f"{module} -> {other}")
    return imports


def reached_by_workers() -> set[str]:
    """Every module that a worker, a backend or a kernel imports, directly or not."""
    reached: set[str] = set()
    waiting = [
        "worker.__main__",
        "worker.exchange",
        *(name for name in MODULES if re.match(r"backends|kernels|measures\.\w+\.worker$", name)),
    ]
    while waiting:
        if (module := waiting.pop()) not in reached:
            reached.add(module)
            waiting += imported(module)[0]
    return reached


def test_every_package_has_its_layer() -> None:
    assert {package_of(module) for module in MODULES} == set(FROM_THE_BOTTOM_UP)


def test_imports_only_point_down() -> None:
    height = {package: number for number, package in enumerate(FROM_THE_BOTTOM_UP)}
    upwards = [line for (here, to), lines in arrows().items() if height[to] >= height[here] for line in lines]
    assert not upwards, f"these imports point up: {'; '.join(upwards)}"


def test_imports_have_no_cycle() -> None:
    left = {module: imported(module)[0] - {module} for module in MODULES}
    while leaves := {module for module, others in left.items() if not others & left.keys()}:
        left = {module: others for module, others in left.items() if module not in leaves}
    assert not left, f"a circle among {', '.join(sorted(left))}"


def test_few_modules_stand_outside_a_package() -> None:
    assert len(list(PACKAGE.glob("*.py"))) <= MOST_IN_GROUND


def test_workers_reach_packages_of_their_side_only() -> None:
    assert {package_of(module) for module in reached_by_workers()} == set(WORKER_SIDE)


def test_workers_side_imports_only_numpy_and_its_framework() -> None:
    lean, wrong = sys.stdlib_module_names | {"numpy"}, []
    for module in sorted(reached_by_workers()):
        own = FRAMEWORKS.get(package_of(module), set()) | FRAMEWORKS.get(module, set())
        wrong += [f"{module} -> {name}" for name in sorted(imported(module)[1] - lean - own)]
    assert not wrong, f"these modules run in a library's environment, which has no such package: {'; '.join(wrong)}"


ARCHITECTURE = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")


def test_architecture_names_existing_files_and_every_package() -> None:
    named = set(re.findall(r"`(snnbench/[\w/.]+)`", ARCHITECTURE))
    assert not [path for path in named if not (ROOT / path).exists()]
    folders = {package.partition(".")[0] for package in FROM_THE_BOTTOM_UP} - {"ground", "__main__"}
    assert {f"snnbench/{folder}/" for folder in folders} <= named


LIBRARIES = sorted({path.stem for path in (ROOT / "adapters").glob("*.py")} - {"reference"})
"""Names of libraries, without `reference`: the core has its own `reference`."""
READ_BY_PEOPLE = {"help", "metavar", "epilog"}
"""Arguments with text that may hold an example."""


def reader_texts(code: ast.AST) -> Iterator[ast.AST]:
    """Subtrees with text for a reader, in which a library may be an example: docstrings, helps and errors."""
    for node in ast.walk(code):
        match node:
            case ast.Expr(value=ast.Constant() as text) | ast.Raise(exc=ast.AST() as text):
                yield text
            case ast.keyword(arg=str(name), value=text) if name in READ_BY_PEOPLE:
                yield text


def words(code: ast.AST) -> Iterator[tuple[int, str]]:
    """(line, word) of every identifier and every string that is not text for a reader."""
    text = {id(part) for root in reader_texts(code) for part in ast.walk(root)}
    for node in ast.walk(code):
        if id(node) in text:
            continue
        line = getattr(node, "lineno", 0)
        match node:
            case ast.Constant(value=str(word)) | ast.Name(id=word) | ast.Attribute(attr=word) | ast.alias(name=word):
                yield line, word
            case ast.arg(arg=word) | ast.keyword(arg=str(word)) | ast.ImportFrom(module=str(word)):
                yield line, word
            case ast.FunctionDef(name=word) | ast.ClassDef(name=word):
                yield line, word


NAMES = "|".join(re.escape(name).replace("\\-", "[-_]") for name in LIBRARIES)
NAMED = re.compile(f"({NAMES})(?-i:(?![a-z]))", re.IGNORECASE)
"""`serial` is a library, `Serializer` is another word."""


def named(code: ast.AST) -> list[str]:
    """The lines and words of this code that name a library."""
    return [f"line {line}: {word!r}" for line, word in words(code) if NAMED.search(word)]


def test_core_names_no_library() -> None:
    names = {module: found for module in sorted(MODULES) if (found := named(tree(module)))}
    assert not names, f"these modules name a library: {names}"


def test_name_in_code_is_noticed() -> None:
    sources = (
        *(
            "if library == 'norse':\n    pass",
            "import sinabs",
            "from rockpool.nn import modules",
            "run(torch_loop=True)",
        ),
        *("def make_spyx(): ...", "x = f'{y}/torch-loop'", "DEFAULT = {'snntorch': 1}", "class NorseNeuron: ..."),
    )
    assert not [source for source in sources if not named(ast.parse(source))]


def test_example_for_a_reader_is_no_name_in_code() -> None:
    sources = (
        *("import serializer", "import torch", "'''Such as norse/box.'''\nx = 1"),
        *("Option('--only', help='library=norse/*')", "raise ValueError('no condition such as library=norse')"),
    )
    assert not [source for source in sources if named(ast.parse(source))]
