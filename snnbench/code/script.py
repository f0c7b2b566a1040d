"""The script of a network: the adapter's code for its case, and the few lines around it that a user writes."""

import ast
from collections.abc import Sequence
from dataclasses import dataclass
from inspect import getsource

from snnbench.adapter.declaration import Adapter, Variant
from snnbench.cases.case import Case
from snnbench.cases.surrogate import FORMULAS
from snnbench.code.specialised import Specialiser, names, pruned
from snnbench.exits import Exit, UserError

OURS = "snnbench.adapter", "snnbench.backends", "snnbench.cases"
"""Modules whose names do not stand in a script. The kernels are a library of their own."""


class NoCode(UserError):
    """There is no code for this contender and case; the message says why."""

    code = Exit.USAGE


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


def script(adapter: Adapter, variant: Variant, case: Case) -> str:
    """A script that builds the network of a case in a library, runs a training pass and needs no snnbench.

    Raises NoCode.
    """
    if case.workload not in ("linear_lif", "layers", "lif") or variant.way:
        raise NoCode(f"{adapter.name}: code is made for layers of neurons, run as the library's documentation says")
    if case.dtype != "float32":
        raise NoCode(f"{adapter.name}: code is made for float32")
    make = {"torch": _torch, "jax": _jax}.get(variant.backend)
    if make is None:
        raise NoCode(f"{adapter.name}: code is made for PyTorch and JAX")
    body = make(adapter.name, parts(adapter, variant, case), variant, case)
    pins = " ".join(variant.pins.dependencies)
    about = f"{adapter.name}/{variant.built_as}" if len(adapter.variants) > 1 else adapter.name
    version = f" {variant.pins.version}" if variant.pins.version else ""
    head = f"# {about}{version}: {variant.about}\n# pip install {pins}\n"
    return f"{head}\n{body}"


def parts(adapter: Adapter, variant: Variant, case: Case) -> Parts:
    """The adapter's code for a case. Raises NoCode."""
    tree = Specialiser(case, variant.built_as).visit(ast.parse(adapter.path.read_text(encoding="utf-8-sig")))
    functions = {each.name: each for each in tree.body if isinstance(each, ast.FunctionDef)}
    made = functions.get("neuron") or functions["build"]
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
    unused = {"provider", "constants"} if case.is_recurrent else {"provider", "constants", "recurrent"}
    fields = {name: each for name, each in fields.items() if name not in unused and ast.unparse(each) != "None"}
    returned = ast.Return(ast.Tuple(list(fields.values()), ast.Load()))
    *definitions, _ = pruned([*definitions, returned])
    if ours := sorted(set().union(*map(names, [*definitions, returned])) & _of_snnbench(tree)):
        raise NoCode(f"{adapter.name}: its adapter uses snnbench's {', '.join(ours)}")
    return Parts(definitions, kind, fields)


def _formulas() -> list[ast.stmt]:
    """The definitions of the surrogates, without types and defaults, which code never needs, and their import."""
    found: list[ast.stmt] = [ast.Import([ast.alias("math")])]
    for formula in FORMULAS.values():
        (definition,) = ast.parse(getsource(formula)).body
        assert isinstance(definition, ast.FunctionDef)
        definition.args = ast.arguments(
            [], [ast.arg(each.arg) for each in definition.args.args], None, [], [], None, []
        )
        definition.returns = None
        found.append(definition)
    return found


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


def _written(found: Parts, case: Case, imports: Sequence[str]) -> str:
    """The definitions as text, with these imports and a `case` if one is still read."""
    written = [ast.unparse(each) for each in found.definitions if isinstance(each, ast.Import | ast.ImportFrom)]
    read = set().union(*map(names, (*found.definitions, *found.fields.values())))
    own = ["from types import SimpleNamespace"] if "case" in read else []
    known = dict.fromkeys([*own, *imports, *written])
    blocks = ["\n".join(sorted(known, key=lambda line: (line.startswith("from"), line)))]
    if own:
        blocks.append(f"case = SimpleNamespace({', '.join(f'{name}={getattr(case, name)!r}' for name in NEURON)})")
    lines: list[str] = []
    for each in found.definitions:
        if isinstance(each, ast.FunctionDef | ast.ClassDef):
            blocks += ["\n".join(lines)] if lines else []
            blocks, lines = [*blocks, ast.unparse(ast.fix_missing_locations(each))], []
        elif not isinstance(each, ast.Import | ast.ImportFrom):
            lines.append(ast.unparse(ast.fix_missing_locations(each)))
    return "\n\n\n".join([*blocks, *(["\n".join(lines)] if lines else [])])


def _gain(found: Parts) -> str:
    """` * 10.0`, or nothing for a gain of 1."""
    gain = found.fields.get("gain")
    written = "1.0" if gain is None else ast.unparse(gain)
    written = written if isinstance(gain, ast.Name | ast.Constant) else f"({written})"
    return "" if gain is None or written in ("1", "1.0") else f" * {written}"


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
    order, gain, fields = variant.order, _gain(found), {name: ast.unparse(each) for name, each in found.fields.items()}
    sizes = _Sizes(case)
    axes = ", ".join({"T": "steps", "B": "batch", "N": sizes.entering}[axis] for axis in order)
    text = _written(found, case, ["import torch"])
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
    gain, layer = _gain(found), ast.unparse(found.fields["layer"])
    sizes = _Sizes(case)
    axes = ", ".join({"T": "steps", "B": "batch", "N": sizes.entering}[axis] for axis in variant.order)
    text = _written(found, case, ["import jax", "import jax.numpy as jnp"])
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
