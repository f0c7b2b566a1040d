"""An adapter's code for a case, as the parts of a script."""

import ast
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from inspect import getsource

from snnbench.adapter.declaration import Adapter, Variant
from snnbench.cases.case import Case
from snnbench.cases.surrogate import FORMULAS
from snnbench.code.no_code import NoCode
from snnbench.code.specialised import Specialiser, names, pruned

OURS = "snnbench.adapter", "snnbench.backends", "snnbench.cases"
"""Modules whose names do not stand in a script. The kernels are a library of their own."""


@dataclass(frozen=True, slots=True)
class Parts:
    """An adapter's code for a case, and what the adapter returns with it: a `kind` of FIELDS with these `fields`."""

    definitions: list[ast.stmt]
    kind: str
    fields: dict[str, ast.expr]


FIELDS = {
    "Neuron": ("layer", "gain", "provider", "reset", "joined", "recurrent"),
    "SteppedNeuron": ("step", "gain", "provider"),
    "Network": ("apply", "params", "linears", "gain"),
}


def parts(adapter: Adapter, variant: Variant, case: Case) -> Parts:
    """The adapter's code for a case. Raises NoCode."""
    tree = Specialiser(case, variant.built_as).visit(ast.parse(adapter.path.read_text(encoding="utf-8-sig")))
    functions = {each.name: each for each in tree.body if isinstance(each, ast.FunctionDef)}
    made = functions.get("neuron") or functions.get("build")
    if made is None:
        raise NoCode(f"{adapter.name}: its adapter has no function neuron or build")
    others = [each for each in tree.body if _defines(each) and each is not made]
    *definitions, last = pruned([*_formulas(), *others, *made.body])
    match last:
        case ast.Return(value=ast.Call(func=ast.Name(id=kind)) as call) if kind in FIELDS:
            fields = dict(zip(FIELDS[kind], call.args, strict=False))
            fields |= {each.arg: each.value for each in call.keywords if each.arg}
        case _:
            raise NoCode(f"{adapter.name}: its adapter decides at run time what it builds")
    if case.is_recurrent and "recurrent" not in fields:
        raise NoCode(f"{adapter.name}: its adapter builds a network with recurrent layers of its own")
    if case.trained_constants and variant.backend == "jax":
        raise NoCode(f"{adapter.name}: code in JAX is made for constants that are not trained")
    unused = {"provider", "constants", "chunk", "start"} | (set() if case.is_recurrent else {"recurrent"})
    fields = {name: each for name, each in fields.items() if name not in unused and ast.unparse(each) != "None"}
    returned = ast.Return(ast.Tuple(list(fields.values()), ast.Load()))
    *definitions, _ = pruned([*definitions, returned])
    if ours := sorted(set().union(*map(names, [*definitions, returned])) & _of_snnbench(tree)):
        raise NoCode(f"{adapter.name}: its adapter uses snnbench's {', '.join(ours)}")
    return Parts(definitions, kind, fields)


def _formulas() -> list[ast.stmt]:
    """The definitions of the surrogates, without types and defaults, which code never needs, and their import."""
    definitions: list[ast.stmt] = [ast.Import([ast.alias("math")])]
    for formula in FORMULAS.values():
        (definition,) = ast.parse(getsource(formula)).body
        assert isinstance(definition, ast.FunctionDef)
        definition.args = ast.arguments(
            [], [ast.arg(each.arg) for each in definition.args.args], None, [], [], None, []
        )
        definition.returns = None
        definitions.append(definition)
    return definitions


def _defines(statement: ast.stmt) -> set[str]:
    """The names that a statement of a module defines, but for those of snnbench."""
    match statement:
        case ast.FunctionDef(name=name) | ast.ClassDef(name=name) | ast.Assign(targets=[ast.Name(id=name)]):
            return {name}
        case ast.ImportFrom(module=module) if (module or "").startswith(OURS):
            return set()
        case ast.Import(names=given) | ast.ImportFrom(names=given):
            return {each.asname or each.name.partition(".")[0] for each in given}
    return set()


def _of_snnbench(tree: ast.Module) -> set[str]:
    """The names that an adapter imports from snnbench's own modules."""
    imports = [each for each in tree.body if isinstance(each, ast.ImportFrom) and (each.module or "").startswith(OURS)]
    return {name.asname or name.name for each in imports for name in each.names}


NEURON = ("neurons", "device", "dtype", "beta", "threshold", "reset", "detach_reset", "surrogate", "slope")
"""The fields of a case that code may look up by a name that is known at run time only."""


def written(neuron_parts: Parts, case: Case, imports: Sequence[str]) -> str:
    """The definitions as text, with these imports and a `case` if one is still read."""
    return "\n\n\n".join([imports_in_order([*imports, *imports_of(neuron_parts)]), *text_of(neuron_parts, case)])


def imports_in_order(lines: Iterable[str]) -> str:
    """These imports, each once: modules first."""
    return "\n".join(sorted(set(lines), key=lambda line: (line.startswith("from"), line)))


def imports_of(neuron_parts: Parts) -> list[str]:
    """The imports of an adapter's code."""
    own = ["from types import SimpleNamespace"] if _reads_case(neuron_parts) else []
    return own + [
        ast.unparse(each) for each in neuron_parts.definitions if isinstance(each, ast.Import | ast.ImportFrom)
    ]


def text_of(neuron_parts: Parts, case: Case) -> list[str]:
    """The definitions without imports, in blocks."""
    blocks: list[str] = []
    if _reads_case(neuron_parts):
        blocks.append(f"case = SimpleNamespace({', '.join(f'{name}={getattr(case, name)!r}' for name in NEURON)})")
    lines: list[str] = []
    for each in neuron_parts.definitions:
        if isinstance(each, ast.FunctionDef | ast.ClassDef):
            blocks += ["\n".join(lines)] if lines else []
            blocks, lines = [*blocks, ast.unparse(ast.fix_missing_locations(each))], []
        elif not isinstance(each, ast.Import | ast.ImportFrom):
            lines.append(ast.unparse(ast.fix_missing_locations(each)))
    return [*blocks, *(["\n".join(lines)] if lines else [])]


def _reads_case(neuron_parts: Parts) -> bool:
    return "case" in set().union(*map(names, (*neuron_parts.definitions, *neuron_parts.fields.values())))


def gain_of(neuron_parts: Parts) -> str:
    """` * 10.0`, or nothing for a gain of 1."""
    gain = neuron_parts.fields.get("gain")
    written = "1.0" if gain is None else ast.unparse(gain)
    written = written if isinstance(gain, ast.Name | ast.Constant) else f"({written})"
    return "" if gain is None or written in ("1", "1.0") else f" * {written}"
