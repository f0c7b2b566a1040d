"""Tests of the error messages for malformed config files and --set options: each is one line with a location."""

from pathlib import Path
from typing import get_args

import pytest

from snnbench.adapter.declaration import Adapter
from snnbench.cases import case
from snnbench.plan import config
from snnbench.plan.config import ConfigError
from tests.plan.test_config import CASE, PROTOCOL, SWEEP, TOP, WHOLE, adapters, complaint, load, missing_key

__all__ = ["adapters"]

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
    ('"train"', '"training"', "protocol.phases: 'training' is not one of train, forward, backward, inference, epoch, "
     "compute, loader (did you mean 'train'?)"),
    ('"train"', '"epoch"', "protocol.phases: the workload linear_lif has no phase 'epoch' (it has train, "),
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


def test_missing_key_is_reported_after_a_sweep_that_needs_none(tmp_path: Path) -> None:
    """The neurons alone have no `input_rate`, and the sweep of a whole layer after them has."""
    alone = SWEEP.replace("size", "alone") + 'workload = "lif"\n'
    text = WHOLE.replace("input_rate = 0.1\n", "").replace(SWEEP, alone + SWEEP)
    assert complaint(tmp_path, text) == missing_key("input_rate")


def test_at_most_five_errors_are_shown(tmp_path: Path) -> None:
    keys = ("neurons", "batch", "time_steps", "layers", "threads", "slope", "threshold")
    message = complaint(tmp_path, WHOLE, [f"case.{key}=0" for key in keys])
    assert [line.split(":")[0] for line in message.splitlines()] == [f"--set case.{key}" for key in keys[:5]]


def test_two_sweeps_of_one_name_are_refused(tmp_path: Path) -> None:
    assert complaint(tmp_path, WHOLE + SWEEP) == "core.toml: sweep 'size': an earlier sweep has this name"


WRONG_SETTINGS: list[tuple[str, str]] = [
    ("case.alpha=0.8", "--set case.alpha: unknown key 'alpha': it belongs to the workload layers "
     "(give case.widths, too)"),
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
        ("core.yaml", WHOLE, "core.yaml: unknown suffix '.yaml'; a config is a .toml file"),
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
