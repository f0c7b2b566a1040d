"""The script of a network: the adapter's code for its case, and the few lines around it that a user writes."""

import ast

from snnbench import workloads
from snnbench.adapter.declaration import Adapter, Variant
from snnbench.cases.case import Case
from snnbench.cases.problem import Graph
from snnbench.code import graph_jax, graph_parts, graph_torch
from snnbench.code.no_code import NoCode
from snnbench.code.parts import Parts, gain_of, parts, written


def script(adapter: Adapter, variant: Variant, case: Case) -> str:
    """A script that builds the network of a case in a library, runs a training pass and needs no snnbench.

    The weights of a graph are in a file beside it, with the arrays of `weights`. Raises NoCode.
    """
    graph = _graph(case)
    if (graph is None and case.workload not in ("linear_lif", "layers", "lif")) or variant.way:
        raise NoCode(f"{adapter.name}: code is made for layers of neurons, run as the library's documentation says")
    if case.chunk_steps:
        raise NoCode(f"{adapter.name}: code is made for sequences that come as a whole")
    if case.dtype != "float32":
        raise NoCode(f"{adapter.name}: code is made for float32")
    if variant.backend not in ("torch", "jax"):
        raise NoCode(f"{adapter.name}: code is made for PyTorch and JAX")
    if graph is not None:
        body = (graph_torch if variant.backend == "torch" else graph_jax).body(adapter, variant, graph)
    else:
        make = _torch if variant.backend == "torch" else _jax
        body = make(adapter.name, parts(adapter, variant, case), variant, case)
    pins = " ".join(variant.pins.dependencies)
    about = f"{adapter.name}/{variant.built_as}" if len(adapter.variants) > 1 else adapter.name
    version = f" {variant.pins.version}" if variant.pins.version else ""
    head = f"# {about}{version}: {variant.about}\n# pip install {pins}\n"
    return f"{head}\n{body}"


def weights(case: Case) -> tuple[str, bytes] | None:
    """The name and the content of the file that a script of this case reads; None if it reads none."""
    graph = _graph(case)
    return None if graph is None else (graph_parts.file_of(graph), graph_parts.weights(graph))


def _graph(case: Case) -> Graph | None:
    """The problem of a graph with weights of its own."""
    problem = workloads.of(case).Problem(case) if case.DRIVEN_BY else None
    return problem if isinstance(problem, Graph) else None


class _Sizes:
    """The sizes of a stack as code: alike in all layers, or the widths of each."""

    def __init__(self, case: Case) -> None:
        widths = getattr(case, "layer_widths", (case.neurons,) * 2)
        rest = f"batch, steps = {{}}, {case.batch}, {case.time_steps}"
        self.layers = f"range({len(widths) - 1})"
        if len(set(widths)) == 1 and not case.is_recurrent:
            self.given = f"neurons, {rest.format(case.neurons)}"
            self.entering = self.layer = "neurons"
            self.pair, self.each_pair, self.each_layer = "neurons, neurons", f"_ in {self.layers}", "_ in linears"
            self.jax_weights = ["weights = [jax.random.normal(key, (neurons, neurons)) / neurons**0.5 for key in keys]"]
        else:
            self.given = f"widths, {rest.format(list(widths))}"
            self.entering, self.layer, self.each_layer = "widths[0]", "neurons", "neurons in widths[1:]"
            self.pair, self.each_pair = "inputs, neurons", "inputs, neurons in zip(widths, widths[1:])"
            self.jax_weights = [
                "shapes = zip(widths[1:], widths)",
                "weights = [jax.random.normal(key, shape) / shape[1] ** 0.5 for key, shape in zip(keys, shapes)]",
            ]

    def about(self, axes: str) -> str:
        """What a network with inputs of these axes gives."""
        if self.entering == "neurons":
            return f"Spikes [{axes}] of an input of the same shape."
        return f"Spikes [{axes.replace('widths[0]', 'widths[-1]')}] of an input [{axes}]."


def _torch(name: str, found: Parts, variant: Variant, case: Case) -> str:
    """The script of a network in PyTorch."""
    if found.kind == "Network":
        raise NoCode(f"{name}: its adapter builds a whole network of its own")
    order, gain, fields = (
        variant.order,
        gain_of(found),
        {name: ast.unparse(each) for name, each in found.fields.items()},
    )
    sizes = _Sizes(case)
    axes = ", ".join({"T": "steps", "B": "batch", "N": sizes.entering}[axis] for axis in order)
    text = written(found, case, ["import torch"])
    lines = [sizes.given, f"linears = [torch.nn.Linear({sizes.pair}) for {sizes.each_pair}]"]
    if "joined" in fields:
        lines += [f"make_layer = {fields['joined']}", "neuron_layers = [make_layer(linear) for linear in linears]"]
    else:
        made = fields["layer"] if found.kind == "Neuron" else fields["step"]
        lines += [f"make_layer = {made}"]
        lines += _recurrent(case, fields["recurrent"], gain) if case.is_recurrent else []
        layers = f"make_layer({sizes.layer}) for {sizes.each_layer}"
        if case.is_recurrent:
            layers = "make_recurrent(back) if back else make_layer(neurons) for back, neurons in zip(own, widths[1:])"
        lines += [f"neuron_layers = [{layers}]"]
    lines += ["", "", "def network(x):", f'    """{sizes.about(axes)}"""']
    if "reset" in fields:
        reset = (
            fields["reset"] if isinstance(found.fields["reset"], ast.Name | ast.Attribute) else f"({fields['reset']})"
        )
        lines += ["    for layer in neuron_layers:", f"        {reset}(layer)"]
    if found.kind == "SteppedNeuron":
        lines += [
            "    states, outputs = [None] * len(neuron_layers), []",
            "    for spikes in x.unbind(0):",
            "        for number, (linear, layer) in enumerate(zip(linears, neuron_layers)):",
            f"            spikes, states[number] = layer(linear(spikes){gain}, states[number])",
            "        outputs.append(spikes)",
            "    return torch.stack(outputs)",
        ]
    else:
        step = "layer(x)" if "joined" in fields else f"layer(linear(x){gain})"
        lines += ["    for linear, layer in zip(linears, neuron_layers):", f"        x = {step}", "    return x"]
    rate = getattr(case, "input_rate", None) or 0.1
    lines += [
        "",
        "",
        'if __name__ == "__main__":',
        f"    x = (torch.rand({axes}) < {rate}).float()",
        "    spikes = network(x)",
        "    spikes.mean().backward()",
        '    print(f"{spikes.mean().item():.3f} spikes a step")',
        "",
    ]
    return text + "\n\n\n" + "\n".join(lines)


def _recurrent(case: Case, made: str, gain: str) -> list[str]:
    """The linear layers of recurrent layers in PyTorch, and what makes these layers."""
    marked = f"zip(widths[1:], {list(case.recurrent_layers)})"  # type: ignore[attr-defined]
    own = f"torch.nn.Linear(n, n, bias=False) if is_recurrent else None for n, is_recurrent in {marked}"
    lines = [f"make_recurrent = {made}", f"own = [{own}]"]
    if gain:
        lines += ["for back in filter(None, own):", f"    back.weight.data = back.weight.data{gain}"]
    return lines


def _jax(name: str, found: Parts, variant: Variant, case: Case) -> str:
    """The script of a network in JAX."""
    if found.kind != "Neuron":
        raise NoCode(f"{name}: its adapter builds a whole network of its own")
    gain, layer = gain_of(found), ast.unparse(found.fields["layer"])
    sizes = _Sizes(case)
    axes = ", ".join({"T": "steps", "B": "batch", "N": sizes.entering}[axis] for axis in variant.order)
    text = written(found, case, ["import jax", "import jax.numpy as jnp"])
    rate = getattr(case, "input_rate", None) or 0.1
    current, own = f"(x @ weight.T + bias){gain}" if gain else "x @ weight.T + bias", ", *own" * case.is_recurrent
    layers = [f"neuron_layers = [make_layer({sizes.layer}) for {sizes.each_layer.replace('linears', sizes.layers)}]"]
    params = ["params = [(weight, jnp.zeros(len(weight))) for weight in weights]"]
    if case.is_recurrent:
        if gain:
            raise NoCode(f"{name}: its adapter scales the currents of recurrent layers")
        layers = [
            f"make_recurrent = {ast.unparse(found.fields['recurrent'])}",
            f"marks = {list(case.recurrent_layers)}",  # type: ignore[attr-defined]
            "kinds = [make_recurrent if mark else make_layer for mark in marks]",
            "neuron_layers = [make(neurons) for make, neurons in zip(kinds, widths[1:])]",
        ]
        params = [
            "own = [[jnp.zeros((neurons, neurons))] if mark else [] for mark, neurons in zip(marks, widths[1:])]",
            "params = [(weight, jnp.zeros(len(weight)), *back) for weight, back in zip(weights, own)]",
        ]
    lines = [
        sizes.given,
        f"make_layer = {layer}",
        *layers,
        "keys = jax.random.split(jax.random.key(0), len(neuron_layers))",
        *sizes.jax_weights,
        *params,
        "",
        "",
        "@jax.jit",
        "def network(params, x):",
        f'    """{sizes.about(axes)}"""',
        f"    for (weight, bias{own}), layer in zip(params, neuron_layers):",
        f"        x = layer({current}{own})",
        "    return x",
        "",
        "",
        'if __name__ == "__main__":',
        f"    x = jax.random.bernoulli(jax.random.key(1), {rate}, ({axes})).astype(jnp.float32)",
        "    gradients = jax.grad(lambda params: network(params, x).mean())(params)",
        '    print(f"{network(params, x).mean():.3f} spikes a step")',
        "",
    ]
    return text + "\n\n\n" + "\n".join(lines)
