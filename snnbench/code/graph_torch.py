"""The script of a NIR graph in PyTorch: its own modules, and the adapter's code at each site of neurons."""

from collections.abc import Sequence
from textwrap import indent

from snnbench.adapter.declaration import Adapter, Variant
from snnbench.cases.operations import Flatten, Integrator, Linear, Neurons, Operation, Scaling, Sum
from snnbench.cases.problem import Graph
from snnbench.cases.windows import Convolution, WindowSum
from snnbench.code.graph_parts import (
    called,
    drawn,
    file_of,
    makers,
    parts_of_sites,
    reads_decays,
    shape_of,
    sites_of,
    variables,
)
from snnbench.code.no_code import NoCode
from snnbench.code.parts import Parts, gain_of, imports_in_order, imports_of, text_of
from snnbench.code.specialised import OWN_DECAYS


def body(adapter: Adapter, variant: Variant, problem: Graph) -> str:
    """The script, without its head. Raises NoCode."""
    if variant.order not in ("TBN", "BTN"):
        raise NoCode(f"{adapter.name}: code of a graph in PyTorch is made for time or the batch first")
    operations, sites = problem.operations(), sites_of(problem)
    parts_of = parts_of_sites(adapter, variant, problem, ("Neuron", "SteppedNeuron"))
    is_stepped = any(each.kind == "SteppedNeuron" for each in parts_of.values())
    if is_stepped and any(isinstance(each, Integrator) or (each in sites and each.recurrent) for each in operations):
        raise NoCode(f"{adapter.name}: step by step, code is made for graphs without recurrence and integrators")
    named = variables(operations, RESERVED)
    made, texts = _makers(problem, parts_of, sites, named)
    imports = [line for each in parts_of.values() for line in imports_of(each)]
    blocks = [
        imports_in_order(["import numpy", "import torch", *imports]),
        f'weights = {{name: torch.from_numpy(array) for name, array in numpy.load("{file_of(problem)}").items()}}',
        *texts,
        _modules(operations, named),
        _sites(sites, parts_of, made, named),
        (_stepped if is_stepped else _network)(problem, variant, named),
        _main(problem, variant),
    ]
    return "\n\n\n".join(blocks)


RESERVED = (
    *("x", "leads", "weights", "modules", "scalings", "sites", "network", "spikes", "potentials", "states"),
    *("outputs", "torch", "numpy"),
)


def _makers(
    problem: Graph, parts_of: dict[str, Parts], sites: list[Neurons], named: dict[str, str]
) -> tuple[dict[str, str], list[str]]:
    """The function that makes the neurons of each site, and the texts of these functions."""
    bodies, parameters = dict[str, str](), dict[str, str]()
    for site in sites:
        of_site = parts_of[site.name]
        fields = {name: called(each) for name, each in of_site.fields.items()}
        taken = "own" if site.recurrent else "neurons"
        made = fields["recurrent" if site.recurrent else "step" if "step" in fields else "layer"]
        gain = fields.get("gain", "1.0")
        scaled = [f"own.weight.data = own.weight.data * {gain}"] if site.recurrent and gain_of(of_site) else []
        returned = f"return {made}({taken}), {gain}, {fields.get('reset', 'None')}"
        bodies[site.name] = "\n\n".join([*text_of(of_site, problem.neuron(site)), "\n".join([*scaled, returned])])
        parameters[site.name] = f"{taken}, {OWN_DECAYS}" if reads_decays(of_site) else taken
    return makers(bodies, parameters, named)


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


def _sites(sites: list[Neurons], parts_of: dict[str, Parts], made: dict[str, str], named: dict[str, str]) -> str:
    """The neurons of each site, the number by which they take their current, and the call that resets them."""
    lines = []
    for site in sites:
        given = f'modules["{named[site.name]}"]' if site.recurrent else str(site.count)
        decays = f', weights["{site.name}.{OWN_DECAYS}"]' if reads_decays(parts_of[site.name]) else ""
        lines.append(f'    "{site.name}": {made[site.name]}({given}{decays}),')
    return "\n".join(["sites = {", *lines, "}"])


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
    head = f'def network(x):\n    """Output [{axes}, ...] of an input [{axes}, {shape_of(problem)}]."""\n'
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
    head = f'def network(x):\n    """Output [steps, batch, ...] of an input [steps, batch, {shape_of(problem)}]."""\n'
    head += "    states, outputs = dict.fromkeys(sites), []\n    for x in x.unbind(0):\n"
    return f"{STEP}\n\n\n{head}{indent(chr(10).join(lines), ' ' * 8)}\n    return torch.stack(outputs)"


STEP = '''def spikes(site, current, states):
    """The spikes of a site's neurons in one step, for a current [batch, ...]."""
    neurons, gain, _ = sites[site]
    fired, states[site] = neurons(current.flatten(1) * gain, states[site])
    return fired.reshape(current.shape)'''


def _main(problem: Graph, variant: Variant) -> str:
    sizes, rate, times = drawn(problem, variant.order)
    return (
        'if __name__ == "__main__":\n'
        f"    x = (torch.rand({sizes}) < {rate}).float(){times}\n"
        "    output = network(x)\n"
        "    output.mean().backward()\n"
        '    print(f"{output.mean().item():.3f} is the mean output of a step")\n'
    )
