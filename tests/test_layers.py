"""The package's layers: imports only point down, the worker's side stays lean, and the core knows no library."""

import ast
import re
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "snnbench"

FROM_THE_BOTTOM_UP = """
afterwork snnbench case clocks container contention difference finding installer instructions looks nearest outcome
pins probe refusal statistics surrogate turns ways

compiler_caches decision drift extent rule schema

adapter document inputs layout machine record reference roofline slurm splicing timing varying verify wire
kernels.compiler kernels.formula kernels.neuron kernels.buffers

attempts coverage

writer
kernels.lif_cpu kernels.lif_cuda kernels.lif_ref kernels.lif_torch kernels.lif_triton kernels.choice

kernels.pipeline

kernels.operator

kernels.layer

kernels

backends backends.torch_errors backends.torch_ways comparability compiler_doctor contender declaration environments
exam fresh gpu_doctor mistake process cards mark rounding submission throttling tidy

chain network_check passes probes sample

backends.jax backends.numpy backends.torch_session config doctor library memory peaks side slots spotcheck

standing

backends.torch_graph cell movement layerwise noise phase_proof selection shard shown verdicts

compare backends.torch estimate jobs judge merge sheet spot_checks

abtest checking.cell checking.files checking.trials compare_output pairs runner timed_phase

checking executor measurement rank replay status

rank_output report.citation report.exponent report.numbers report.section report.work worker

report.charts report.charts.style report.findings report.tables

report

report.charts.dots report.charts.firstcall report.charts.lines report.charts.machine report.charts.memory
report.charts.noise report.charts.pareto report.charts.split

report.charting report.failures report.headline report.matrix report.noise report.provenance report.scaling
report.sides

report.outline

report.figures report.page

cli.exits cli.progress

cli.options

cli.recording cli.waiting

cli.task

cli.submitting

cli.abtesting cli.checking cli.comparison cli.environment cli.examination cli.listing cli.merging cli.ranking
cli.reporting cli.request cli.running cli.showing cli.state cli.verification

cli

__main__
"""
LAYERS = [set(layer.split()) for layer in FROM_THE_BOTTOM_UP.split("\n\n")]
"""A module imports from the layers below its own, and from none beside or above it."""

WORKER_SIDE = {
    *("snnbench", "adapter", "backends", "backends.jax", "backends.numpy", "backends.torch", "backends.torch_graph"),
    *("backends.torch_errors", "backends.torch_session", "backends.torch_ways", "case", "contention", "declaration"),
    *("afterwork", "chain", "clocks", "extent", "fresh", "layerwise", "network_check", "passes", "phase_proof", "pins"),
    *("exam", "inputs", "layout", "measurement", "memory", "outcome", "peaks", "reference", "roofline", "sample"),
    *("rounding", "rule", "spot_checks", "spotcheck", "statistics", "surrogate", "timed_phase", "timing", "verify"),
    *("instructions", "probe", "probes", "refusal", "turns", "ways", "wire", "worker"),
    *("kernels", "kernels.compiler", "kernels.formula", "kernels.lif_cpu", "kernels.lif_cuda", "kernels.lif_ref"),
    *("kernels.lif_torch", "kernels.lif_triton", "kernels.neuron", "kernels.operator", "kernels.buffers"),
    *("kernels.pipeline", "kernels.choice", "kernels.layer"),
}
"""What runs in a library's environment, where of snnbench's dependencies there is only NumPy."""
FRAMEWORKS = {
    "backends.jax": {"jax"},
    "backends.torch": {"torch"},
    "backends.torch_errors": {"torch"},
    "backends.torch_graph": {"torch"},
    "backends.torch_session": {"torch"},
    "backends.torch_ways": {"torch"},
    "kernels.choice": {"torch"},
    "kernels.layer": {"torch"},
    "kernels.lif_cpu": {"torch"},
    "kernels.lif_cuda": {"torch", "cuda"},
    "kernels.lif_ref": {"torch"},
    "kernels.lif_torch": {"torch"},
    "kernels.lif_triton": {"torch", "triton"},
    "kernels.operator": {"torch"},
    "kernels.buffers": {"torch"},
    "kernels.pipeline": {"torch"},
}
"""What else a module of the worker's side may import: the framework that it drives, or that its kernel is for."""


def name_of(path: Path) -> str:
    """`backends.torch` for snnbench/backends/torch.py; `snnbench` for the package itself."""
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return ".".join(part for part in parts if part != "__init__") or "snnbench"


MODULES = {name_of(path): path for path in sorted(PACKAGE.rglob("*.py")) if "data" not in path.parts}
LAYER_OF = {name: number for number, names in enumerate(LAYERS) for name in names}


@cache
def tree(module: str) -> ast.Module:
    """The module's syntax tree."""
    return ast.parse(MODULES[module].read_text(encoding="utf-8"))


def imported(module: str) -> tuple[set[str], set[str]]:
    """Every module that this one imports anywhere: those of the package, and the others by their top-level names."""
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


def test_every_module_has_its_layer() -> None:
    unplaced = sorted(MODULES.keys() - LAYER_OF.keys())
    assert not unplaced, f"put {', '.join(unplaced)} into a layer of LAYERS in tests/test_layers.py"
    gone = sorted(LAYER_OF.keys() - MODULES.keys())
    assert not gone, f"take {', '.join(gone)} out of LAYERS in tests/test_layers.py"
    assert sum(map(len, LAYERS)) == len(LAYER_OF), "a module stands in two layers"


@pytest.mark.parametrize("module", sorted(MODULES.keys() & LAYER_OF.keys()))
def test_imports_only_point_down(module: str) -> None:
    layer = LAYER_OF[module]
    wrong = [f"{name} (layer {LAYER_OF[name]})" for name in imported(module)[0] if LAYER_OF.get(name, -1) >= layer]
    assert not wrong, f"{module} (layer {layer}) imports {', '.join(wrong)}"


def test_the_worker_s_side_is_what_the_worker_and_the_backends_reach() -> None:
    reached: set[str] = set()
    waiting = ["worker", *(name for name in MODULES if name.startswith(("backends", "kernels")))]
    while waiting:
        if (module := waiting.pop()) not in reached:
            reached.add(module)
            waiting += imported(module)[0]
    assert reached | {"snnbench"} == WORKER_SIDE


@pytest.mark.parametrize("module", sorted(WORKER_SIDE & MODULES.keys()))
def test_the_worker_s_side_imports_the_standard_library_numpy_and_its_own(module: str) -> None:
    inside, outside = imported(module)
    allowed = sys.stdlib_module_names | {"numpy"} | FRAMEWORKS.get(module, set())
    wrong = sorted((inside - WORKER_SIDE) | (outside - allowed))
    assert not wrong, f"{module} runs in a library's environment, and imports {', '.join(wrong)}"


LIBRARIES = sorted({path.stem for path in (ROOT / "adapters").glob("*.py")} - {"reference"})
"""Names of contenders; `reference` is also what the core calls its own."""
READ_BY_PEOPLE = {"help", "metavar", "epilog"}
"""Arguments whose text may hold an example."""


def spoken(code: ast.AST) -> Iterator[ast.AST]:
    """Subtrees that are text for a reader, where a library may stand as an example: docstrings, helps and errors."""
    for node in ast.walk(code):
        match node:
            case ast.Expr(value=ast.Constant() as text) | ast.Raise(exc=ast.AST() as text):
                yield text
            case ast.keyword(arg=str(name), value=text) if name in READ_BY_PEOPLE:
                yield text


def words(code: ast.AST) -> Iterator[tuple[int, str]]:
    """(line, word) of every identifier and every string that is not text for a reader."""
    text = {id(part) for root in spoken(code) for part in ast.walk(root)}
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


def named(code: ast.AST) -> list[str]:
    """Where this code names a library."""
    pattern = re.compile("|".join(re.escape(name).replace("\\-", "[-_]") for name in LIBRARIES), re.IGNORECASE)
    return [f"line {line}: {word!r}" for line, word in words(code) if pattern.search(word)]


@pytest.mark.parametrize("module", sorted(MODULES))
def test_the_core_knows_no_library_by_name(module: str) -> None:
    assert named(tree(module)) == []


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("if library == 'norse':\n    pass", True),
        ("import sinabs", True),
        ("from rockpool.nn import modules", True),
        ("def make_spyx(): ...", True),
        ("x = f'{y}/torch-loop'", True),
        ("run(torch_loop=True)", True),
        ("DEFAULT = {'snntorch': 1}", True),
        ("'''Such as norse/box.'''\nx = 1", False),
        ("Option('--only', help='library=norse/*')", False),
        ("raise ValueError('no condition such as library=norse')", False),
        ("import torch", False),
    ],
)
def test_a_name_in_code_is_found_and_an_example_is_not(source: str, found: bool) -> None:
    assert bool(named(ast.parse(source))) is found
