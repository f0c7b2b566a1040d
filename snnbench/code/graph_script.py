"""The script of a NIR graph in a library: PyTorch's own modules, and the adapter's code at each site of neurons."""

import ast
import io
import keyword
import re
from collections.abc import Sequence
from textwrap import indent
from typing import Any

import numpy as np

from snnbench.adapter.declaration import Adapter, Variant
from snnbench.cases.operations import (
    INPUT,
    Convolution,
    Flatten,
    Integrator,
    Linear,
    Neurons,
    Operation,
    Scaling,
    Sum,
    WindowSum,
)
from snnbench.cases.problem import Graph
from snnbench.code.no_code import NoCode
from snnbench.code.parts import Parts, gain_of, imports_in_order, imports_of, parts, text_of
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
    decays = {each.name: problem.neuron(each).beta for each in problem.operations() if isinstance(each, Neurons)}
    arrays |= {
        f"{name}.{OWN_DECAYS}": np.float32(each) for name, each in decays.items() if isinstance(each, np.ndarray)
    }
    content = io.BytesIO()
    np.savez(content, **arrays)
    return content.getvalue()


def body(adapter: Adapter, variant: Variant, problem: Graph) -> str:
    """The script, without its head. Raises NoCode."""
    if variant.backend != "torch" or variant.order not in ("TBN", "BTN"):
        raise NoCode(f"{adapter.name}: code of a graph is made for PyTorch, with time or the batch first")
    operations = problem.operations()
    sites = [each for each in operations if isinstance(each, Neurons)]
    for site in sites:
        if reason := variant.refusal(problem.neuron(site)):
            raise NoCode(f"{adapter.name}: {site.name}: {reason}")
    parts_of = {site.name: parts(adapter, variant, problem.neuron(site)) for site in sites}
    if any(each.kind not in ("Neuron", "SteppedNeuron") for each in parts_of.values()):
        raise NoCode(f"{adapter.name}: its adapter builds a whole network of its own")
    is_stepped = any(each.kind == "SteppedNeuron" for each in parts_of.values())
    if is_stepped and any(isinstance(each, Integrator) or (each in sites and each.recurrent) for each in operations):
        raise NoCode(f"{adapter.name}: step by step, code is made for graphs without recurrence and integrators")
    named = _names(operations)
    makers, texts = _makers(problem, parts_of, sites, named)
    imports = [line for each in parts_of.values() for line in imports_of(each)]
    blocks = [
        imports_in_order(["import numpy", "import torch", *imports]),
        f'weights = {{name: torch.from_numpy(array) for name, array in numpy.load("{file_of(problem)}").items()}}',
        *texts,
        _modules(operations, named),
        _sites(sites, parts_of, makers, named),
        (_stepped if is_stepped else _network)(problem, variant, named),
        _main(problem, variant),
    ]
    return "\n\n\n".join(blocks)


def _names(operations: Sequence[Operation]) -> dict[str, str]:
    """A variable for each value."""
    names = {INPUT: "x"}
    for operation in operations:
        plain = re.sub(r"[^a-zA-Z0-9_]", "_", operation.name)
        plain = plain if plain.isidentifier() and not keyword.iskeyword(plain) else f"node_{plain}"
        while plain in (*RESERVED, *names.values()):
            plain += "_"
        names[operation.name] = plain
    return names


RESERVED = (
    *("x", "leads", "weights", "modules", "scalings", "sites", "network", "spikes", "potentials", "states"),
    *("outputs", "torch", "numpy"),
)


def _makers(
    problem: Graph, parts_of: dict[str, Parts], sites: list[Neurons], named: dict[str, str]
) -> tuple[dict[str, str], list[str]]:
    """The function that makes the neurons of each site, and the texts of these functions: alike sites share one."""
    makers: dict[str, str] = {}
    texts: dict[str, str] = {}
    for site in sites:
        of_site = parts_of[site.name]
        fields = {name: _called(ast.unparse(each)) for name, each in of_site.fields.items()}
        taken = "own" if site.recurrent else "neurons"
        made = fields["recurrent" if site.recurrent else "step" if "step" in fields else "layer"]
        gain = fields.get("gain", "1.0")
        scaled = [f"own.weight.data = own.weight.data * {gain}"] if site.recurrent and gain_of(of_site) else []
        returned = f"return {made}({taken}), {gain}, {fields.get('reset', 'None')}"
        inner = "\n\n".join([*text_of(of_site, problem.neuron(site)), "\n".join([*scaled, returned])])
        given = f"{taken}, {OWN_DECAYS}" if _reads_decays(of_site) else taken
        if inner not in texts:
            texts[inner] = f"def make_{named[site.name]}({given}):\n{indent(inner, '    ')}"
        makers[site.name] = texts[inner].partition("(")[0].removeprefix("def ")
    return makers, list(texts.values())


def _modules(operations: Sequence[Operation], named: dict[str, str]) -> str:
    """The modules with parameters, and how they get their weights."""
    lines = ["modules = {}"]
    for each in operations:
        key = named[each.name]
        match each:
            case Convolution():
                sizes = f"{each.size}, {each.stride}, {each.padding}, {each.dilation}, bias={each.biased}"
                made = f"torch.nn.Conv{len(each.size)}d({each.inputs}, {each.shape[0]}, {sizes})"
            case Linear():
                made = f"torch.nn.Linear({each.inputs}, {each.shape[0]}, bias={each.biased})"
            case Neurons() if each.recurrent:
                made = f"torch.nn.Linear({each.count}, {each.count}, bias=False)"
            case _:
                continue
        lines.append(f'modules["{key}"] = {made}')
        lines += [
            f'modules["{key}"].{"weight" if name == "recurrent" else name}.data = weights["{each.name}.{name}"]'
            for name in each.parameters
        ]
    scalings = [f"{each.name}.{name}" for each in operations if isinstance(each, Scaling) for name in each.parameters]
    if scalings:
        lines.append(f"scalings = {{name: torch.nn.Parameter(weights[name]) for name in {scalings}}}")
    return "\n".join(lines)


def _sites(sites: list[Neurons], parts_of: dict[str, Parts], makers: dict[str, str], named: dict[str, str]) -> str:
    """The neurons of each site, the number by which they take their current, and the call that resets them."""
    lines = []
    for site in sites:
        given = f'modules["{named[site.name]}"]' if site.recurrent else str(site.count)
        decays = f', weights["{site.name}.{OWN_DECAYS}"]' if _reads_decays(parts_of[site.name]) else ""
        lines.append(f'    "{site.name}": {makers[site.name]}({given}{decays}),')
    return "\n".join(["sites = {", *lines, "}"])


def _reads_decays(neuron_parts: Parts) -> bool:
    return OWN_DECAYS in set().union(*map(names, (*neuron_parts.definitions, *neuron_parts.fields.values())))


def _called(function: str) -> str:
    """A function, or a number, as the first part of a longer expression."""
    return function if re.fullmatch(r"[\w.]+", function) else f"({function})"


def _value(operation: Operation, named: dict[str, str]) -> str:
    """The expression of an operation that is no site."""
    entering = [named[name] for name in operation.of]
    key = named[operation.name]
    match operation:
        case Convolution() | Linear():
            return f'modules["{key}"]({entering[0]})'
        case Scaling():
            bias = f' + scalings["{operation.name}.bias"]' if operation.biased else ""
            return f'{entering[0]} * scalings["{operation.name}.weight"]{bias}'
        case WindowSum() if len(operation.size) == 2:
            sizes = f"{operation.size}, {operation.stride}, {operation.padding}"
            divisor = "" if operation.is_mean else ", divisor_override=1"
            return f"torch.nn.functional.avg_pool2d({entering[0]}, {sizes}{divisor})"
        case Flatten():
            return f"{entering[0]}.reshape(-1, {', '.join(map(str, operation.shape))})"
        case Sum():
            return " + ".join(entering)
    raise NoCode(f"{operation.name}: code is not made for a {type(operation).__name__}")


def _network(problem: Graph, variant: Variant, named: dict[str, str]) -> str:
    """The functions that run the graph layer by layer."""
    operations, time = problem.operations(), variant.order.index("T")
    axes = "steps, batch" if time == 0 else "batch, steps"
    lines = ["leads, x = x.shape[:2], x.flatten(0, 1)"]
    for operation in operations:
        entering = named[operation.of[0]]
        match operation:
            case Neurons():
                value = f'spikes("{operation.name}", {entering}, leads)'
            case Integrator():
                value = f"potentials({entering}, leads, {operation.alpha}, {operation.beta})"
            case _:
                value = _value(operation, named)
        lines.append(f"{named[operation.name]} = {value}")
    lines.append(f"return {named[operations[-1].name]}.unflatten(0, leads)")
    head = f'def network(x):\n    """Output [{axes}, ...] of an input [{axes}, {_shape(problem)}]."""\n'
    integrates = any(isinstance(operation, Integrator) for operation in operations)
    helpers = [SPIKES, *([POTENTIALS.format(axis=time)] if integrates else [])]
    return "\n\n\n".join([*helpers, head + indent("\n".join(lines), "    ")])


SPIKES = '''def spikes(site, current, leads):
    """The spikes of a site's neurons, which are reset before, for a current [images, ...]."""
    neurons, gain, reset = sites[site]
    if reset:
        reset(neurons)
    return neurons(current.unflatten(0, leads).flatten(2) * gain).reshape(current.shape)'''
POTENTIALS = '''def potentials(current, leads, alpha, beta):
    """The potentials of leaky integrators, step by step, for a current [images, ...]."""
    synaptic, total, steps = 0.0, 0.0, []
    for x in current.unflatten(0, leads).unbind({axis}):
        synaptic = alpha * synaptic + x
        total = beta * total + synaptic
        steps.append(total)
    return torch.stack(steps, {axis}).flatten(0, 1)'''


def _stepped(problem: Graph, variant: Variant, named: dict[str, str]) -> str:
    """The functions that run the graph step by step."""
    operations, lines = problem.operations(), []
    for operation in operations:
        variable, entering = named[operation.name], named[operation.of[0]]
        if isinstance(operation, Neurons):
            lines.append(f'{variable} = spikes("{operation.name}", {entering}, states)')
        else:
            lines.append(f"{variable} = {_value(operation, named)}")
    lines.append(f"outputs.append({named[operations[-1].name]})")
    head = f'def network(x):\n    """Output [steps, batch, ...] of an input [steps, batch, {_shape(problem)}]."""\n'
    head += "    states, outputs = dict.fromkeys(sites), []\n    for x in x.unbind(0):\n"
    return f"{STEP}\n\n\n{head}{indent(chr(10).join(lines), ' ' * 8)}\n    return torch.stack(outputs)"


STEP = '''def spikes(site, current, states):
    """The spikes of a site's neurons in one step, for a current [batch, ...]."""
    neurons, gain, _ = sites[site]
    fired, states[site] = neurons(current.flatten(1) * gain, states[site])
    return fired.reshape(current.shape)'''


def _shape(problem: Graph) -> str:
    return ", ".join(map(str, problem.input(0).shape[2:]))


def _main(problem: Graph, variant: Variant) -> str:
    case = problem.case
    leads = (case.time_steps, case.batch) if variant.order == "TBN" else (case.batch, case.time_steps)
    sizes = ", ".join(map(str, (*leads, *problem.input(0).shape[2:])))
    size = getattr(case, "amplitude", 1.0)
    times = f" * {size}" if size != 1 else ""
    return (
        'if __name__ == "__main__":\n'
        f"    x = (torch.rand({sizes}) < {getattr(case, 'input_rate', 0.1)}).float(){times}\n"
        "    output = network(x)\n"
        "    output.mean().backward()\n"
        '    print(f"{output.mean().item():.3f} is the mean output of a step")\n'
    )
