"""What the scripts of a NIR graph have in common, in each framework: their file, their names, the neurons of a site."""

import ast
import io
import keyword
import re
from collections.abc import Sequence
from textwrap import indent
from typing import Any

import numpy as np

from snnbench.adapter.declaration import Adapter, Variant
from snnbench.cases.operations import INPUT, Neurons, Operation
from snnbench.cases.problem import Graph
from snnbench.code.no_code import NoCode
from snnbench.code.parts import Parts, parts
from snnbench.code.specialised import OWN_DECAYS, names


def file_of(problem: Graph) -> str:
    """The name of the file that a script reads."""
    return f"{problem.case.row()['graph'].partition('@')[0]}.npz"


def weights(problem: Graph) -> bytes:
    """The content of that file: weights, and decays of neurons that each have their own."""
    given, arrays = problem.parameters(), dict[str, Any]()
    for operation in problem.operations():
        named = zip(operation.parameters, given.get(operation.name, ()), strict=True)
        arrays |= {f"{operation.name}.{parameter}": array for parameter, array in named}
    decays = {each.name: problem.neuron(each).beta for each in sites_of(problem)}
    arrays |= {
        f"{name}.{OWN_DECAYS}": np.float32(each) for name, each in decays.items() if isinstance(each, np.ndarray)
    }
    content = io.BytesIO()
    np.savez(content, **arrays)
    return content.getvalue()


def sites_of(problem: Graph) -> list[Neurons]:
    """The sites of neurons."""
    return [each for each in problem.operations() if isinstance(each, Neurons)]


def parts_of_sites(adapter: Adapter, variant: Variant, problem: Graph, kinds: Sequence[str]) -> dict[str, Parts]:
    """The adapter's code for each site, by the site's name, if it is of one of these kinds. Raises NoCode."""
    for site in sites_of(problem):
        if reason := variant.refusal(problem.neuron(site)):
            raise NoCode(f"{adapter.name}: {site.name}: {reason}")
    parts_of = {site.name: parts(adapter, variant, problem.neuron(site)) for site in sites_of(problem)}
    if any(each.kind not in kinds for each in parts_of.values()):
        raise NoCode(f"{adapter.name}: its adapter builds a whole network of its own")
    return parts_of


def variables(operations: Sequence[Operation], reserved: Sequence[str]) -> dict[str, str]:
    """A variable for each value, none of them `reserved`."""
    named = {INPUT: "x"}
    for operation in operations:
        plain = re.sub(r"[^a-zA-Z0-9_]", "_", operation.name)
        plain = plain if plain.isidentifier() and not keyword.iskeyword(plain) else f"node_{plain}"
        while plain in (*reserved, *named.values()):
            plain += "_"
        named[operation.name] = plain
    return named


def makers(
    bodies: dict[str, str], parameters: dict[str, str], named: dict[str, str]
) -> tuple[dict[str, str], list[str]]:
    """The function that makes the neurons of each site, and the texts of these functions: alike sites share one.

    A function has the body and the parameters of its site.
    """
    made: dict[str, str] = {}
    texts: dict[str, str] = {}
    for site, body in bodies.items():
        if body not in texts:
            texts[body] = f"def make_{named[site]}({parameters[site]}):\n{indent(body, '    ')}"
        made[site] = texts[body].partition("(")[0].removeprefix("def ")
    return made, list(texts.values())


def reads_decays(neuron_parts: Parts) -> bool:
    """Whether an adapter's code reads the decays of neurons that each have their own."""
    return OWN_DECAYS in set().union(*map(names, (*neuron_parts.definitions, *neuron_parts.fields.values())))


def called(function: ast.expr) -> str:
    """A function, or a number, as the first part of a longer expression."""
    text = ast.unparse(function)
    return text if re.fullmatch(r"[\w.]+", text) else f"({text})"


def shape_of(problem: Graph) -> str:
    """The axes of the input behind those of time and batch."""
    return ", ".join(map(str, problem.input(0).shape[2:]))


def drawn(problem: Graph, order: str) -> tuple[str, str, str]:
    """The sizes of an input in this order, the share of its spikes, and what their size adds to an expression."""
    case = problem.case
    leads = (case.time_steps, case.batch) if order == "TBN" else (case.batch, case.time_steps)
    sizes = ", ".join(map(str, (*leads, *problem.input(0).shape[2:])))
    size = getattr(case, "amplitude", 1.0)
    return sizes, str(getattr(case, "input_rate", 0.1)), f" * {size}" if size != 1 else ""
