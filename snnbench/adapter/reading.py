"""Reading of an adapter file without running it: its header, docstring and constants.

    # /// script ... # ///      packages to install: pins.py
    BACKEND = "torch"           "torch", "jax" or "numpy"
    ORDER = "TBN"               the order of the axes of the library's input and output; "TBN" if left out
    VARIANTS = {"name": "what it is"}       ways of running it; the first is the default
    WAYS = ("compile", "amp")   ways that the harness adds, each as one more variant: the default variant run that way,
                                or another one: {"cuda-graph": "variant"}
    LATENCY = 0                 steps by which the output is late; the harness allows for it outside the timed region
    DEVICES = ("cpu", "cuda")   where it runs; both if left out
    EXACT = ("subtract",)       profiles in which it is the reference, unless it deviates; other profiles are skipped
    RESETS = "..."              why it is not the reference in other profiles: how its neuron resets
    DEVIATION = "..."           how it differs from the reference, if it cannot be exact; left out otherwise
    INFERENCE_ONLY = "..."      why it has no backward pass, if it has none
    PROVIDER = ("regex",)       patterns that names of kernels or operators that ran must match, or the answer is
                                incorrect: the first in every pass, the others in training passes
    SYNAPTIC = ("zero",)        profiles in which its neurons may have a synaptic current, the case's alpha
    RECURRENT = ("zero",)       profiles in which a layer may get its own spikes back
    TRAINED = ("beta",)         the constants of its neurons that it trains: beta, threshold
    OWN_DECAYS = True           each of its neurons may have a decay of its own: then case.beta is an array [N] of the
                                framework; left out otherwise
    CHUNKS = True               its Neuron has `chunk`, which takes and gives a state, so a sequence may come in chunks;
                                left out otherwise
    COMPILES = True             a compiler takes a quarter of a minute or more before the first pass; left out otherwise
    NEEDS = "..."               a requirement that no package index has, and where to get it
    def neuron(case, variant): ...          returns the backend's Neuron, for a workload of neurons alone and, with
                                            linear layers between, for a stack; raises Unsupported(reason) if it cannot
    def build(case, weights, variant): ...  returns the backend's network of a stack in an idiom of its own, without
                                            `neuron` or in place of its stack
    def rule(case, variant): ...            the Rule (rule.py) of a variant that is another neuron and is checked
                                            against that rule; None for other variants
    def from_nir(path, dt, batch): ...      the library's importer of NIR graphs: the network in the file at `path` for
                                            steps of `dt` seconds, as a function from spikes [T, B, ...], a NumPy
                                            array, to the output [T, B, ...]
    def to_nir(layers, dt, path): ...       the library's exporter: it writes the library's own network of these layers
                                            as a NIR graph to `path`, and returns it as from_nir does. A layer
                                            has a weight [N, M] and a bias [N], NumPy arrays, and the neurons' case

All constants are literals, and each but VARIANTS and WAYS may be a dictionary by variant.
"""

import ast
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from snnbench.adapter import pins
from snnbench.adapter.declaration import NAME, ONLY_VARIANT, WAYS, Adapter, Variant
from snnbench.adapter.refusal import AdapterError
from snnbench.cases.case import CONSTANTS as TRAINABLE
from snnbench.cases.case import PROFILES

EXCHANGES = {"import": "from_nir", "export": "to_nir"}
"""The functions of an adapter that read and write NIR graphs."""


@dataclass(frozen=True, slots=True)
class Constant:
    """The expected value of a constant, in words and as a test; only BACKEND must not be left out."""

    expected: str
    fits: Callable[[Any], bool]


def _sentence(value: Any) -> bool:
    return isinstance(value, str) and value != ""


def _patterns(value: Any) -> bool:
    try:
        return (
            isinstance(value, tuple)
            and value != ()
            and all(_sentence(pattern) and re.compile(pattern) for pattern in value)
        )
    except re.error:
        return False


def _some_of(value: Any, known: Any) -> bool:
    return isinstance(value, tuple) and value != () and all(isinstance(name, str) and name in known for name in value)


API = 2
"""The version of the interface between adapter files and snnbench, which a header may name."""
DEVICES = ("cpu", "cuda")
BACKENDS = '"torch", "jax" or "numpy"'
CONSTANTS = {
    "BACKEND": Constant(BACKENDS, lambda value: value in ("torch", "jax", "numpy")),
    "ORDER": Constant('the letters of "TBN"', lambda value: isinstance(value, str) and sorted(value) == sorted("TBN")),
    "LATENCY": Constant("a number of steps", lambda value: isinstance(value, int) and value >= 0),
    "DEVICES": Constant('a tuple of "cpu" and "cuda"', lambda value: _some_of(value, DEVICES)),
    "EXACT": Constant(f"a tuple of profiles ({', '.join(PROFILES)})", lambda value: _some_of(value, PROFILES)),
    "RESETS": Constant("a sentence", _sentence),
    "DEVIATION": Constant("a sentence", _sentence),
    "INFERENCE_ONLY": Constant("a sentence", _sentence),
    "PROVIDER": Constant("a tuple of regular expressions", _patterns),
    "NEEDS": Constant("a sentence", _sentence),
    "COMPILES": Constant("True or False", lambda value: isinstance(value, bool)),
    "SYNAPTIC": Constant(f"a tuple of profiles ({', '.join(PROFILES)})", lambda value: _some_of(value, PROFILES)),
    "RECURRENT": Constant(f"a tuple of profiles ({', '.join(PROFILES)})", lambda value: _some_of(value, PROFILES)),
    "OWN_DECAYS": Constant("True or False", lambda value: isinstance(value, bool)),
    "CHUNKS": Constant("True or False", lambda value: isinstance(value, bool)),
    "TRAINED": Constant('a tuple of "beta" and "threshold"', lambda value: _some_of(value, TRAINABLE)),
}


def read(path: Path) -> Adapter:
    """The declaration of the adapter file at `path`, read without running it. Raises AdapterError."""
    try:
        text = path.read_text(encoding="utf-8-sig")
        tree = ast.parse(text)
    except OSError as error:
        raise AdapterError(f"{path}: {error.strerror}") from error
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        # ValueError: not text, or with null bytes; the last two: nested too deeply
        raise AdapterError(f"{path}: {error}") from error
    try:
        header = pins.header(text)
    except (ValueError, RecursionError) as error:  # errors of TOML, too
        raise AdapterError(f"{path}: script header: {error}") from error
    own = header.get("tool", {}).get("snnbench", {})
    if (api := own.get("api", API)) != API:
        raise AdapterError(f"{path}: script header: api = {api!r}: this snnbench has version {API} of the interface")
    constants = _constants(tree)
    functions = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
    if not functions & {"neuron", "build", "parts"}:
        raise AdapterError(f"{path}: no function neuron(case, variant), and no build(case, weights, variant)")
    if "BACKEND" not in constants:
        raise AdapterError(f"{path}: no BACKEND = {BACKENDS}")
    about = (ast.get_docstring(tree) or "").split("\n\n")[0].replace("\n", " ")
    name = path.stem.replace("_", "-")
    _require_names(path, "the library's name, from the file's", [name])
    return Adapter(
        name=name,
        path=path,
        about=about,
        modules=tuple(own.get("modules", ())),
        variants=_variants(path, constants, header, about or path.stem),
        exchanges=tuple(each for each, function in EXCHANGES.items() if function in functions),
        nir=tuple(own.get("nir", ())),
    )


def _require_names(path: Path, what: str, names: Iterable[str]) -> None:
    """Raise AdapterError for a name that no recording can hold."""
    for name in names:
        if not re.fullmatch(NAME, name):
            allowed = "1 to 100 of the letters a to z and A to Z, digits, and _ . + -, a letter or digit first"
            raise AdapterError(f"{path}: {what}: {name!r} should be {allowed}")


def _variants(path: Path, constants: dict[str, Any], header: dict[str, Any], about: str) -> dict[str, Variant]:
    """Every variant with its constants and pins; variants that the harness adds come last."""
    given = constants.get("VARIANTS") or {ONLY_VARIANT: about}
    if not (isinstance(given, dict) and all(isinstance(word, str) for pair in given.items() for word in pair)):
        raise AdapterError(f'{path}: VARIANTS: expected {{"name": "description"}}')
    _require_names(path, "VARIANTS", given)
    named = {name: _by_variant(path, name, constants.get(name), given) for name in CONSTANTS}
    for variant in header.get("tool", {}).get("snnbench", {}).get("variants", {}):
        if variant not in given:
            raise AdapterError(f"{path}: script header: [tool.snnbench.variants.{variant}] is not in VARIANTS")
    variants = {
        name: Variant(
            about=text,
            built_as=name,
            pins=pins.of_variant(header, name),
            **{key.lower(): values[name] for key, values in named.items() if name in values},
        )
        for name, text in given.items()
    }
    variants = {
        name: replace(variant, exact=()) if variant.deviation else variant for name, variant in variants.items()
    }
    return variants | _ways(path, constants.get("WAYS", ()), variants)


def _ways(path: Path, ways: Any, variants: dict[str, Variant]) -> dict[str, Variant]:
    """The variants that the harness adds."""
    if ways == ():
        return {}
    is_tuple = isinstance(ways, tuple) and _some_of(ways, WAYS)
    variant_by_way = dict.fromkeys(ways, next(iter(variants))) if is_tuple else ways
    is_known = isinstance(variant_by_way, dict) and _some_of(tuple(variant_by_way), WAYS)
    if is_known and set(map(str, variant_by_way.values())) <= variants.keys():
        added = {way: variants[str(name)].run(way) for way, name in variant_by_way.items()}
        if all(variant.backend == "torch" for variant in added.values()) and not added.keys() & variants.keys():
            return added
    known = ", ".join(WAYS)
    raise AdapterError(
        f'{path}: WAYS: {ways!r} should be a tuple of {known}, of a BACKEND "torch"; or {{one of them: a variant}}'
    )


def _constants(tree: ast.Module) -> dict[str, Any]:
    constants = {}
    for node in tree.body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and node.targets[0].id.isupper():
            try:
                constants[node.targets[0].id] = ast.literal_eval(node.value)
            except (ValueError, TypeError, RecursionError, MemoryError):
                continue  # a computed constant is the adapter's own business
    return constants


def _by_variant(path: Path, name: str, value: Any, variants: dict[str, str]) -> dict[str, Any]:
    """The values of a constant by variant, without variants that leave it out."""
    constant = CONSTANTS[name]
    if value is None:
        return {}
    values = value if isinstance(value, dict) else dict.fromkeys(variants, value)
    for variant in sorted(values.keys() ^ variants.keys(), key=str):
        if variant in values or name == "BACKEND":
            raise AdapterError(f"{path}: {name}: {variant!r} should stand in both VARIANTS and {name}, or in neither")
    for each in values.values():
        if not constant.fits(each):
            raise AdapterError(f"{path}: {name}: {each!r} should be {constant.expected}")
    return values
