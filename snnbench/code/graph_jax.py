"""The script of a NIR graph in JAX: its own functions, and the adapter's code at each site of neurons."""

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

RESERVED = (
    *("x", "leads", "params", "sites", "network", "spikes", "potentials"),
    *("jax", "jnp", "numpy"),
)


def body(adapter: Adapter, variant: Variant, problem: Graph) -> str:
    """The script, without its head. Raises NoCode."""
    if variant.order != "TBN":
        raise NoCode(f"{adapter.name}: code of a graph in JAX is made for time first")
    parts_of = parts_of_sites(adapter, variant, problem, ("Neuron",))
    if any(site.recurrent and gain_of(parts_of[site.name]) for site in sites_of(problem)):
        raise NoCode(f"{adapter.name}: its adapter scales the currents of recurrent neurons")
    operations = problem.operations()
    named = variables(operations, RESERVED)
    made, texts = _makers(problem, parts_of, named)
    imports = [line for each in parts_of.values() for line in imports_of(each)]
    integrates = any(isinstance(operation, Integrator) for operation in operations)
    blocks = [
        imports_in_order(["import jax", "import jax.numpy as jnp", "import numpy", *imports]),
        f'params = {{name: jnp.array(array) for name, array in numpy.load("{file_of(problem)}").items()}}',
        *texts,
        _sites(problem, parts_of, made),
        SPIKES,
        *([POTENTIALS] if integrates else []),
        _network(problem, operations, named),
        _main(problem, variant),
    ]
    return "\n\n\n".join(blocks)


def _makers(problem: Graph, parts_of: dict[str, Parts], named: dict[str, str]) -> tuple[dict[str, str], list[str]]:
    """The function that makes the neurons of each site, and the texts of these functions."""
    bodies, parameters = dict[str, str](), dict[str, str]()
    for site in sites_of(problem):
        of_site = parts_of[site.name]
        fields = {name: called(each) for name, each in of_site.fields.items()}
        made, gain = fields["recurrent" if site.recurrent else "layer"], fields.get("gain", "1.0")
        bodies[site.name] = "\n\n".join([*text_of(of_site, problem.neuron(site)), f"return {made}(neurons), {gain}"])
        parameters[site.name] = f"neurons, {OWN_DECAYS}" if reads_decays(of_site) else "neurons"
    return makers(bodies, parameters, named)


def _sites(problem: Graph, parts_of: dict[str, Parts], made: dict[str, str]) -> str:
    """The neurons of each site, and the number by which they take their current."""
    lines = []
    for site in sites_of(problem):
        decays = f', params["{site.name}.{OWN_DECAYS}"]' if reads_decays(parts_of[site.name]) else ""
        lines.append(f'    "{site.name}": {made[site.name]}({site.count}{decays}),')
    return "\n".join(["sites = {", *lines, "}"])


SPIKES = '''def spikes(site, current, leads, *own):
    """The spikes of a site's neurons for a current [images, ...], and for the weights of their own spikes."""
    neurons, gain = sites[site]
    return neurons(current.reshape(*leads, -1) * gain, *own).reshape(current.shape)'''
POTENTIALS = '''def potentials(current, leads, alpha, beta):
    """The potentials of leaky integrators, step by step, for a current [images, ...]."""
    def step(state, x):
        synaptic = alpha * state[0] + x
        total = beta * state[1] + synaptic
        return (synaptic, total), total

    by_step = current.reshape(*leads, *current.shape[1:])
    nothing = jnp.zeros_like(by_step[0])
    return jax.lax.scan(step, (nothing, nothing), by_step)[1].reshape(current.shape)'''


def _network(problem: Graph, operations: Sequence[Operation], named: dict[str, str]) -> str:
    """The function that runs the graph layer by layer."""
    lines = ["leads, x = x.shape[:2], x.reshape(-1, *x.shape[2:])"]
    lines += [f"{named[operation.name]} = {_value(operation, named)}" for operation in operations]
    last = named[operations[-1].name]
    lines.append(f"return {last}.reshape(*leads, *{last}.shape[1:])")
    about = f'    """Output [steps, batch, ...] of an input [steps, batch, {shape_of(problem)}]."""'
    return "\n".join(["@jax.jit", "def network(params, x):", about, indent("\n".join(lines), "    ")])


def _value(operation: Operation, named: dict[str, str]) -> str:
    """The expression of an operation."""
    entering = [named[name] for name in operation.of]
    x, given = entering[0], {name: f'params["{operation.name}.{name}"]' for name in operation.parameters}
    match operation:
        case Neurons():
            return f"spikes({', '.join([f'{chr(34)}{operation.name}{chr(34)}', x, 'leads', *given.values()])})"
        case Integrator():
            return f"potentials({x}, leads, {operation.alpha}, {operation.beta})"
        case Convolution():
            around = [(each, each) for each in operation.padding]
            sizes = f"{operation.stride}, {around}, rhs_dilation={operation.dilation}"
            bias = f" + {given['bias']}.reshape(-1{', 1' * len(operation.size)})" if operation.biased else ""
            return f"jax.lax.conv_general_dilated({x}, {given['weight']}, {sizes}){bias}"
        case Linear():
            return f"{x} @ {given['weight']}.T" + (f" + {given['bias']}" if operation.biased else "")
        case Scaling():
            return f"{x} * {given['weight']}" + (f" + {given['bias']}" if operation.biased else "")
        case WindowSum():
            around = [(0, 0), (0, 0), *((each, each) for each in operation.padding)]
            sizes = f"{(1, 1, *operation.size)}, {(1, 1, *operation.stride)}, {around}"
            divided = f" / {operation.divisor}" if operation.is_mean else ""
            return f"jax.lax.reduce_window({x}, 0.0, jax.lax.add, {sizes}){divided}"
        case Flatten():
            return f"{x}.reshape(-1, {', '.join(map(str, operation.shape))})"
        case Sum():
            return " + ".join(entering)
    raise NoCode(f"{operation.name}: code is not made for a {type(operation).__name__}")


def _main(problem: Graph, variant: Variant) -> str:
    sizes, rate, times = drawn(problem, variant.order)
    return (
        'if __name__ == "__main__":\n'
        f"    x = jax.random.bernoulli(jax.random.key(1), {rate}, ({sizes})).astype(jnp.float32){times}\n"
        "    gradients = jax.grad(lambda params: network(params, x).mean())(params)\n"
        '    print(f"{network(params, x).mean():.3f} is the mean output of a step")\n'
    )
