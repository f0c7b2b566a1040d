"""Tests of config files: their meaning, and the error messages for malformed ones."""

import dataclasses
import json
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import get_args

import pytest
import yaml

from snnbench.adapter import reading
from snnbench.adapter.contender import Work
from snnbench.adapter.declaration import Adapter
from snnbench.plan import config
from snnbench.plan.config import Config, ConfigError
from snnbench.workloads import case
from tests import fakes

VARIANTS = {"torch-loop": ["unbind", "index"], "norse": ["box", "lif"], "sinabs": ["default"], "spyx": ["default"]}

PROTOCOL = """
[protocol]
phases = ["forward", "train"]
trials = 3
memory_trials = 0
warmup_passes = 1
repetitions = 10
min_repetition_ms = 10
max_phase_seconds = 5.0
timeout_seconds = 120.0
seed = 0
"""
CASE = """
[case]
profile = "subtract"
neurons = 256
batch = 16
time_steps = 100
layers = 1
device = "cpu"
dtype = "float32"
precision = "ieee"
threads = 2
beta = 0.9
threshold = 1.0
surrogate = "fast_sigmoid"
slope = 1.0
input_kind = "spikes"
input_rate = 0.1
input_gradient = true
seed = 1
"""
TOP = 'name = "small"\nanalysis = "why"\nbaseline = "torch-loop"\n'
SWEEP = '[[sweep]]\nname = "size"\nlibraries = ["torch-loop"]\n'
WHOLE = TOP + PROTOCOL + CASE + SWEEP


@pytest.fixture
def adapters(tmp_path: Path) -> dict[str, Adapter]:
    folder = tmp_path / "adapters"
    folder.mkdir()
    for name, variants in VARIANTS.items():
        lines = ["BACKEND = 'numpy'", f"VARIANTS = {dict.fromkeys(variants, 'a way')!r}", "def build(*_): ..."]
        (folder / f"{name}.py").write_text("\n".join(lines))
    return {name: reading.read(folder / f"{name}.py") for name in VARIANTS}


def load(folder: Path, text: str, settings: Sequence[str] = (), name: str = "core.toml") -> Config:
    file = folder / name
    file.write_text(text)
    return config.load(file, settings)


def missing_key(key: str) -> str:
    """The message for a key of the case that the only sweep lacks."""
    return f"core.toml: sweep 'size': missing key '{key}' (give it here, in [case] or by --set case.{key}=VALUE)"


def complaint(folder: Path, text: str, settings: Sequence[str] = (), name: str = "core.toml") -> str:
    """The error message for the user, without the folder of the file."""
    with pytest.raises(ConfigError) as caught:
        load(folder, text, settings, name)
    return str(caught.value).replace(f"{folder}/", "")


def neurons(works: list[Work]) -> list[int]:
    return [work.case.neurons for work in works]


def test_a_sweep_is_the_product_of_its_axes_in_order(tmp_path: Path, adapters: dict[str, Adapter]) -> None:
    sweep = SWEEP.replace('["torch-loop"]', '["sinabs", "norse/lif"]') + "neurons = [64, 32]\ntime_steps = [10, 20]\n"
    works = config.expand(load(tmp_path, TOP + PROTOCOL + CASE + sweep), adapters)
    assert [(w.case.neurons, w.case.time_steps, w.library, w.variant) for w in works] == [
        (64, 10, "sinabs", "default"),
        (64, 10, "norse", "lif"),
        (64, 20, "sinabs", "default"),
        (64, 20, "norse", "lif"),
        (32, 10, "sinabs", "default"),
        (32, 10, "norse", "lif"),
        (32, 20, "sinabs", "default"),
        (32, 20, "norse", "lif"),
    ]


def test_every_field_reaches_the_case(tmp_path: Path, adapters: dict[str, Adapter]) -> None:
    [work] = config.expand(load(tmp_path, WHOLE), adapters)
    assert work == Work(
        fakes.CASE.with_(neurons=256, batch=16, time_steps=100, threads=2, beta=0.9, input_rate=0.1, seed=1),
        "torch-loop",
        "unbind",
    )


def test_the_axes_are_the_fields_of_a_case() -> None:
    fields = {field.name for field in dataclasses.fields(case.Case)}
    assert set(config.Axes.model_fields) == fields - {"workload", "reset", "detach_reset"} | {"profile"}


@pytest.mark.parametrize("profile", case.PROFILES)
def test_a_profile_stands_for_a_reset_and_whether_it_is_detached(
    tmp_path: Path, adapters: dict[str, Adapter], profile: str
) -> None:
    [work] = config.expand(load(tmp_path, WHOLE + f'profile = "{profile}"\n'), adapters)
    assert (work.case.reset, work.case.detach_reset) == case.PROFILES[profile]
    assert work.case.profile == profile


def test_sweep_overrides_the_case(tmp_path: Path, adapters: dict[str, Adapter]) -> None:
    shared = CASE.replace("neurons = 256", "neurons = [256, 512]")
    text = TOP + PROTOCOL + shared + SWEEP + SWEEP.replace("size", "other") + "neurons = 8\n"
    assert neurons(config.expand(load(tmp_path, text), adapters)) == [256, 512, 8]


def test_equal_cells_are_kept_once_where_they_come_first(tmp_path: Path, adapters: dict[str, Adapter]) -> None:
    first = SWEEP + "neurons = [64, 32, 64]\n"
    second = SWEEP.replace("size", "other").replace('"torch-loop"', '"torch-loop/unbind", "torch-loop"')
    text = TOP + PROTOCOL + CASE + first + second + "neurons = [16, 32]\n"
    assert neurons(config.expand(load(tmp_path, text), adapters)) == [64, 32, 16]


def test_an_integer_and_the_same_real_number_are_one_case(tmp_path: Path, adapters: dict[str, Adapter]) -> None:
    works = config.expand(load(tmp_path, WHOLE + "threshold = [1, 1.0]\n"), adapters)
    [work] = works
    assert work.case.key == work.case.with_(threshold=1.0).key


def test_threads_left_out_are_the_default_or_an_error(tmp_path: Path, adapters: dict[str, Adapter]) -> None:
    """A local run has a default; jobs on other machines have none."""
    text = WHOLE.replace("threads = 2\n", "")
    (tmp_path / "core.toml").write_text(text)
    loaded = config.load(tmp_path / "core.toml", default_threads=3)
    assert [work.case.threads for work in config.expand(loaded, adapters)] == [3]
    assert loaded.resolved()["sweep"][0]["threads"] == [3]
    assert complaint(tmp_path, text) == missing_key("threads")


def test_yaml_and_toml_give_the_same_config(tmp_path: Path) -> None:
    as_yaml = yaml.safe_dump(tomllib.loads(WHOLE))
    for name in ("core.yaml", "core.yml"):
        assert load(tmp_path, as_yaml, name=name).resolved() == load(tmp_path, WHOLE).resolved()


def test_a_resolved_config_is_plain_and_a_config_of_its_own(tmp_path: Path, adapters: dict[str, Adapter]) -> None:
    loaded = load(tmp_path, WHOLE + "neurons = [64, 32]\n")
    text = json.dumps(loaded.resolved())  # JSON is YAML
    again = load(tmp_path, text, name="resolved.yaml")
    assert again.resolved() == loaded.resolved()
    assert config.expand(again, adapters) == config.expand(loaded, adapters)


def test_a_config_is_frozen(tmp_path: Path) -> None:
    loaded = load(tmp_path, WHOLE)
    for part, key in ((loaded, "name"), (loaded.protocol, "trials"), (loaded.sweeps[0], "neurons")):
        with pytest.raises(ValueError, match="frozen"):
            setattr(part, key, 1)


def test_the_digest_of_a_protocol_follows_its_content(tmp_path: Path) -> None:
    protocol = load(tmp_path, WHOLE).protocol
    assert protocol.digest == load(tmp_path, WHOLE.replace("ms = 10", "ms = 10.0")).protocol.digest
    assert protocol.digest != load(tmp_path, WHOLE, ["protocol.warmup_passes=2"]).protocol.digest


def test_remeasure_has_bounds_and_is_resolved(tmp_path: Path) -> None:
    assert load(tmp_path, WHOLE).protocol.remeasure == 2
    assert load(tmp_path, WHOLE).resolved()["protocol"]["remeasure"] == 2
    assert [load(tmp_path, WHOLE, [f"protocol.remeasure={n}"]).protocol.remeasure for n in (0, 10)] == [0, 10]
    for wrong in ("-1", "11", "1.5", "true", "many"):
        assert complaint(tmp_path, WHOLE, [f"protocol.remeasure={wrong}"]).startswith("--set protocol.remeasure: ")


def test_phases_may_be_empty_and_memory_limited(tmp_path: Path) -> None:
    protocol = load(tmp_path, WHOLE, ["protocol.phases=[]", "protocol.memory_limit_gib=4"]).protocol
    assert (protocol.phases, protocol.memory_limit_gib) == ((), 4.0)
    assert load(tmp_path, WHOLE).protocol.memory_limit_gib is None


@pytest.mark.parametrize(
    ("setting", "expected"),
    [
        ("case.neurons=[64]", [64, 8]),
        ("case.neurons=[64, 32]", [64, 32, 8]),
        ("sweep.neurons=[64]", [64]),
        ("sweep.other.neurons=128", [256, 128]),
        ("sweep.size.neurons = 128", [128, 8]),
    ],
)
def test_set(tmp_path: Path, adapters: dict[str, Adapter], setting: str, expected: list[int]) -> None:
    text = WHOLE + SWEEP.replace("size", "other") + "neurons = 8\n"
    assert neurons(config.expand(load(tmp_path, text, [setting]), adapters)) == expected


def test_set_takes_words_without_quotes_and_the_last_one_counts(tmp_path: Path) -> None:
    loaded = load(tmp_path, WHOLE, ["case.dtype=float64", 'baseline="sinabs"', "protocol.seed=9", "protocol.seed=1"])
    assert (loaded.sweeps[0].dtype, loaded.baseline, loaded.protocol.seed) == (("float64",), "sinabs", 1)


def test_set_works_where_the_file_has_no_such_table(tmp_path: Path) -> None:
    everything = CASE.removeprefix("\n[case]\n")
    assert load(tmp_path, TOP + PROTOCOL + SWEEP + everything, ["case.batch=3"] * 0).sweeps[0].batch == (16,)
    moved = TOP + PROTOCOL + SWEEP + everything.replace("batch = 16\n", "")
    assert load(tmp_path, moved, ["case.batch=3"]).sweeps[0].batch == (3,)


def test_two_aliased_yaml_sweeps_are_set_apart(tmp_path: Path) -> None:
    tables = tomllib.loads(WHOLE)
    tables["sweep"][0]["device"] = shared = ["cpu"]
    tables["sweep"].append({**tables["sweep"][0], "name": "other", "device": shared})
    loaded = load(tmp_path, yaml.safe_dump(tables), ["sweep.other.neurons=8"], name="core.yaml")
    assert [sweep.neurons for sweep in loaded.sweeps] == [(256,), (8,)]


SURROGATES = ", ".join(get_args(case.Surrogate))
WRONG_FILES: list[tuple[str, str, str]] = [
    ("neurons = 256", "neuron = 256", "core.toml: case: unknown key 'neuron' (did you mean 'neurons'?)"),
    ('"float32"', '"float23"', "case.dtype: 'float23' is not one of float32, float64, bfloat16, float16 "
     "(did you mean 'float32'?)"),
    ('"float32"', '["float32", "half"]', "case.dtype: 'half' is not one of float32, float64, bfloat16, float16"),
    ('"subtract"', '"substract"', "case.profile: 'substract' is not one of subtract, zero, subtract-detached, "
     "zero-attached, none (did you mean 'subtract'?)"),
    ('"fast_sigmoid"', '"fast-sigmoid"', f"case.surrogate: 'fast-sigmoid' is not one of {SURROGATES} "
     "(did you mean 'fast_sigmoid'?)"),
    ('"cpu"', '"cdua"', "case.device: 'cdua' is not one of cpu, cuda (did you mean 'cuda'?)"),
    ('"cpu"', '"CPU"', "case.device: 'CPU' is not one of cpu, cuda (did you mean 'cpu'?)"),
    ("neurons = 256", "neurons = 0", "case.neurons: 0 should be greater than or equal to 1"),
    ("batch = 16", "batch = [4, 0]", "case.batch: 0 should be greater than or equal to 1"),
    ("batch = 16", "batch = []", "case.batch: [] is an empty list: it holds no value"),
    ("batch = 16", 'batch = "16"', "case.batch: '16' should be a valid integer"),
    ("batch = 16", "batch = true", "case.batch: True should be a valid integer"),
    ("batch = 16", "batch = 16.5", "case.batch: 16.5 should be a valid integer"),
    ("threads = 2", "threads = 0", "case.threads: 0 should be greater than or equal to 1"),
    ("layers = 1", "layers = 0", "case.layers: 0 should be greater than or equal to 1"),
    ("time_steps = 100", "time_steps = 0", "case.time_steps: 0 should be greater than or equal to 1"),
    ("beta = 0.9", "beta = 1.1", "case.beta: 1.1 should be less than or equal to 1"),
    ("beta = 0.9", "beta = nan", "case.beta: nan should be "),
    ("threshold = 1.0", "threshold = 0", "case.threshold: 0 should be greater than 0"),
    ("threshold = 1.0", "threshold = inf", "case.threshold: inf should be a finite number"),
    ("slope = 1.0", "slope = -1.0", "case.slope: -1.0 should be greater than 0"),
    ('input_kind = "spikes"', 'input_kind = "noise"', "case.input_kind: 'noise' is not one of spikes, gaussian"),
    ("input_rate = 0.1", "input_rate = 0", "case.input_rate: 0 should be greater than 0"),
    ("input_gradient = true", "input_gradient = 1", "case.input_gradient: 1 should be a valid boolean"),
    ("batch = 16", 'batch = 16\nreset = "zero"', "case: unknown key 'reset' (did you mean 'profile'?)"),
    ("batch = 16", 'batch = 16\nlibraries = "*"', "case: unknown key 'libraries' (known: profile, neurons, "),
    ("trials = 3", "trials = 0", "protocol.trials: 0 should be greater than or equal to 1"),
    ("trials = 3", "trials = 10001", "protocol.trials: 10001 should be less than or equal to 10000"),
    ("trials = 3", "trails = 3", "protocol: unknown key 'trails' (did you mean 'trials'?)"),
    ("\ntrials = 3", "", "core.toml: protocol: missing key 'trials'"),
    ('"train"', '"training"', "protocol.phases: 'training' is not one of inference, forward, backward, train "
     "(did you mean 'train'?)"),
    ('"train"', '"forward"', "protocol.phases: ['forward', 'forward'] should not hold a value twice"),
    ("beta = 0.9\n", "", missing_key("beta")),
    ('"size"', '"Size"', "sweep 'Size': name: 'Size' should match pattern '^[a-z0-9-]+$'"),
    ('name = "size"', "", "core.toml: sweep number 1: missing key 'name'"),
    ('libraries = ["torch-loop"]', "", "core.toml: sweep 'size': missing key 'libraries'"),
    ('libraries = ["torch-loop"]', "libraries = []", "sweep 'size': libraries: [] is an empty list: it holds no value"),
    ('libraries = ["torch-loop"]', 'library = "norse"', "core.toml: sweep 'size': unknown key 'library' "
     "(did you mean 'libraries'?)"),
    (SWEEP, "", "core.toml: no [[sweep]]"),
    ("[[sweep]]", "[sweep]", "core.toml: sweep: should be a list of tables, each opened by [[sweep]]"),
    (CASE, "", missing_key("profile")),
    (PROTOCOL, "", "core.toml: missing key 'protocol'"),
    (PROTOCOL, "protocol = 3\n", "core.toml: protocol: 3 should be a table of keys"),
    ('baseline = "torch-loop"\n', "", "core.toml: missing key 'baseline'"),
    ('analysis = "why"\n', "", "core.toml: missing key 'analysis'"),
    ('analysis = "why"', 'analysis = "why"\nneurons = 3', "core.toml: unknown key 'neurons' "
     "(did you mean 'case.neurons'?)"),
    ("[protocol]", "[protocl]", "core.toml: unknown key 'protocl' (did you mean 'protocol'?)"),
    ("batch = 16", "batch = ", "core.toml: Invalid value (at line 19, column 9)"),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new", "expected"), WRONG_FILES)
def test_mistake_in_a_file_is_one_line(tmp_path: Path, old: str, new: str, expected: str) -> None:
    assert old in WHOLE
    lines = complaint(tmp_path, WHOLE.replace(old, new, 1)).splitlines()
    assert any(expected in line for line in lines)
    assert all(line.startswith("core.toml: ") for line in lines)


def test_unknown_key_of_a_sweep_has_a_suggestion(tmp_path: Path) -> None:
    assert complaint(tmp_path, WHOLE + "neuron = 3\n") == (
        "core.toml: sweep 'size': unknown key 'neuron' (did you mean 'neurons'?)"
    )


def test_wrong_value_is_reported_once_with_its_location(tmp_path: Path) -> None:
    three = SWEEP + "batch = 0\n" + SWEEP.replace("size", "b") + SWEEP.replace("size", "c")
    text = TOP + PROTOCOL + CASE.replace("neurons = 256", "neurons = 0") + three
    assert complaint(tmp_path, text).splitlines() == [
        "core.toml: case.neurons: 0 should be greater than or equal to 1",
        "core.toml: sweep 'size': batch: 0 should be greater than or equal to 1",
    ]


def test_wrong_value_that_every_sweep_overrides_is_reported(tmp_path: Path) -> None:
    text = WHOLE.replace("batch = 16", "batch = 0") + "batch = 1\n"
    assert complaint(tmp_path, text) == "core.toml: case.batch: 0 should be greater than or equal to 1"


def test_key_missing_everywhere_is_reported_once(tmp_path: Path) -> None:
    text = WHOLE.replace("beta = 0.9\n", "") + SWEEP.replace("size", "other")
    assert complaint(tmp_path, text) == missing_key("beta")


def test_at_most_five_errors_are_shown(tmp_path: Path) -> None:
    keys = ("neurons", "batch", "time_steps", "layers", "threads", "slope", "threshold")
    message = complaint(tmp_path, WHOLE, [f"case.{key}=0" for key in keys])
    assert [line.split(":")[0] for line in message.splitlines()] == [f"--set case.{key}" for key in keys[:5]]


def test_two_sweeps_of_one_name_are_refused(tmp_path: Path) -> None:
    assert complaint(tmp_path, WHOLE + SWEEP) == "core.toml: sweep 'size': an earlier sweep has this name"


WRONG_SETTINGS: list[tuple[str, str]] = [
    ("protocol.trails=1", "--set protocol.trails: unknown key 'trails' (did you mean 'trials'?)"),
    ("protocol.trials=x", "--set protocol.trials: 'x' should be a valid integer"),
    ("sweep.neuron=1", "--set sweep.neuron: unknown key 'neuron' (did you mean 'neurons'?)"),
    ("sweep.size.neuron=1", "--set sweep.size.neuron: unknown key 'neuron' (did you mean 'neurons'?)"),
    ("sweep.sise.neurons=1", "--set sweep.sise.neurons: unknown sweep 'sise' (did you mean 'size'?)"),
    ("cases.neurons=1", "--set cases.neurons: unknown section 'cases' (did you mean 'case'?)"),
    ("neurons=1", "--set neurons: unknown key 'neurons' (did you mean 'case.neurons'?)"),
    ("trials=1", "--set trials: unknown key 'trials' (did you mean 'protocol.trials'?)"),
    ("sweep.dtype=float23", "--set sweep.dtype: 'float23' is not one of float32, float64, bfloat16, float16 "
     "(did you mean 'float32'?)"),
    ("case.dtype=float23", "--set case.dtype: 'float23' is not one of float32, float64, bfloat16, float16 "
     "(did you mean 'float32'?)"),
    ("case.batch=1", "--set case.batch: without effect: every sweep gives its own (did you mean 'sweep.batch'?)"),
    ("case=1", "--set case: expected case.KEY"),
    ("case.a.b=1", "--set case.a.b: expected case.KEY"),
    ("sweep=1", "--set sweep: expected sweep.KEY or sweep.NAME.KEY"),
    ("case.neurons", "--set 'case.neurons': expected key=value, for instance case.neurons=[64]"),
    ("=3", "--set '=3': expected key=value, for instance case.neurons=[64]"),
]  # fmt: skip


@pytest.mark.parametrize(("setting", "expected"), WRONG_SETTINGS)
def test_mistake_in_a_set_option_names_it(tmp_path: Path, setting: str, expected: str) -> None:
    assert complaint(tmp_path, WHOLE + "batch = 4\n", [setting]) == expected


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("core.json", WHOLE, "core.json: unknown suffix '.json' (known: .toml, .yaml, .yml)"),
        ("core.yaml", "a: [1\nb: 2", "core.yaml: expected ',' or ']', but got ':' (at line 2, column 2)"),
        ("core.yaml", "[1, 2]", "core.yaml: [1, 2] should be a table of keys"),
        ("core.yaml", "case: {1: 2}", "core.yaml: case: the key 1 should be a string"),
        ("core.yaml", "a: \x07", "core.yaml: unacceptable character #x0007: special characters are not allowed in "),
        ("core.toml", "\x00", "core.toml: "),
    ],
)
def test_unreadable_file_is_reported_with_its_line(tmp_path: Path, name: str, text: str, expected: str) -> None:
    assert complaint(tmp_path, text, name=name).splitlines()[0].startswith(expected)


def test_missing_file_suggests_the_nearest_name(tmp_path: Path) -> None:
    load(tmp_path, WHOLE, name="quick.toml")
    with pytest.raises(ConfigError) as caught:
        config.load(tmp_path / "quik.toml")
    assert str(caught.value) == f"{tmp_path}/quik.toml: no such file (did you mean 'quick.toml'?)"


def test_a_folder_and_bytes_are_no_config(tmp_path: Path) -> None:
    (tmp_path / "bytes.toml").write_bytes(b"a = '\xff'")
    with pytest.raises(ConfigError, match=r"bytes\.toml: not text in UTF-8 \(byte 5\)$"):
        config.load(tmp_path / "bytes.toml")
    with pytest.raises(ConfigError, match=r"Is a directory$"):
        config.load(tmp_path)


@pytest.mark.parametrize(
    ("libraries", "settings", "expected"),
    [
        ("norze", [], "core.toml: sweep 'size': libraries: unknown library 'norze' (did you mean 'norse'?)"),
        ("norse/boxes", [], "core.toml: sweep 'size': libraries: norse: unknown variant 'boxes' (did you mean 'box'?)"),
        ("spyx", ["baseline=torch-lop"], "--set baseline: unknown library 'torch-lop' (did you mean 'torch-loop'?)"),
        ("spyx", ["baseline=norse/*"], "--set baseline: 'norse/*' should be one library or library/variant"),
        ("spyx", ["sweep.libraries=norze"], "--set sweep.libraries: unknown library 'norze' (did you mean 'norse'?)"),
    ],
)
def test_unknown_library_is_one_line(
    tmp_path: Path, adapters: dict[str, Adapter], libraries: str, settings: list[str], expected: str
) -> None:
    loaded = load(tmp_path, WHOLE.replace('["torch-loop"]', f'["{libraries}"]'), settings)
    with pytest.raises(ConfigError) as caught:
        config.expand(loaded, adapters)
    assert str(caught.value).replace(f"{tmp_path}/", "") == expected
