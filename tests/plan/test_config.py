"""Tests of the meaning of config files: sweeps, profiles, defaults, and the option --set."""

import dataclasses
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from snnbench.adapter import reading
from snnbench.adapter.contender import Work
from snnbench.adapter.declaration import Adapter
from snnbench.cases import case
from snnbench.plan import axes, config
from snnbench.plan.config import Config, ConfigError
from snnbench.workloads import WORKLOADS
from tests import fakes
from tests.plan.test_configs import CONFIGS
from tests.sweep import toml

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


def load(folder: Path, text: str, settings: Sequence[str] = (), name: str = "core.toml", **more: Any) -> Config:
    file = folder / name
    file.write_text(text)
    return config.load(file, settings, **more)


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
    for workload in WORKLOADS.values():
        fields = {field.name for field in dataclasses.fields(workload.Case)}  # type: ignore[arg-type]
        assert set(axes.types(workload.NAME)) == fields - {"workload", "reset", "detach_reset"} | {"profile"}


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
    (tmp_path / "core.toml").write_text(text.replace('device = "cpu"', 'device = "cuda"'))
    loaded = config.load(tmp_path / "core.toml", default_threads=9, cards=4)
    assert loaded.resolved()["sweep"][0]["threads"] == [2], "four cards share them"
    assert complaint(tmp_path, text) == missing_key("threads")


def test_a_resolved_config_is_plain_and_a_config_of_its_own(tmp_path: Path, adapters: dict[str, Adapter]) -> None:
    loaded = load(tmp_path, WHOLE + "neurons = [64, 32]\n")
    again = load(tmp_path, toml(loaded.resolved()), name="resolved.toml")
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


TWO_SWEEPS = WHOLE + '[[sweep]]\nname = "hard"\nprofile = "zero"\nneurons = 8\nlibraries = ["torch-loop"]\n'


def test_axis_takes_the_place_of_that_of_every_sweep(tmp_path: Path) -> None:
    sweeps = load(tmp_path, TWO_SWEEPS, axes={"neurons": [32, 64], "time_steps": [7]}).sweeps
    assert [(sweep.neurons, sweep.time_steps) for sweep in sweeps] == [((32, 64), (7,))] * 2
    with pytest.raises(ConfigError, match="--steps: 0 should be"):
        load(tmp_path, TWO_SWEEPS, axes={"time_steps": [0]})
    with pytest.raises(ConfigError, match=r"--model: no sweep of .* has it \(workload: linear_lif\)"):
        load(tmp_path, TWO_SWEEPS, axes={"model": ["vgg"]})


@pytest.mark.parametrize(
    ("asked", "names"), [(["zero"], ["hard"]), (["subtract", "zero"], ["size", "hard"]), (["none"], ["size", "hard"])]
)
def test_sweeps_keep_their_profiles_unless_none_has_one(tmp_path: Path, asked: list[str], names: list[str]) -> None:
    sweeps = load(tmp_path, TWO_SWEEPS, axes={"profile": asked}).sweeps
    assert [sweep.name for sweep in sweeps] == names
    assert {profile for sweep in sweeps for profile in sweep.profile} == {*asked}


def test_mistake_in_a_sweep_that_is_kept_names_its_option(tmp_path: Path) -> None:
    settings = ["sweep.hard.neurons=0", "sweep.size.batch=4"]
    with pytest.raises(ConfigError, match=r"^--set sweep\.hard\.neurons: 0 should be"):
        load(tmp_path, TWO_SWEEPS, settings, axes={"profile": ["zero"]})


def test_two_sweeps_are_set_apart(tmp_path: Path) -> None:
    tables = tomllib.loads(WHOLE)
    tables["sweep"][0]["device"] = shared = ["cpu"]
    tables["sweep"].append({**tables["sweep"][0], "name": "other", "device": shared})
    loaded = load(tmp_path, toml(tables), ["sweep.other.neurons=8"])
    assert [sweep.neurons for sweep in loaded.sweeps] == [(256,), (8,)]


@pytest.mark.parametrize(
    ("cards", "devices", "names"),
    [
        (0, [], ["subtract", "zero"]),
        (2, [], ["subtract", "zero", "cuda"]),
        (2, ["cpu"], ["subtract", "zero"]),
        (1, ["cuda"], ["subtract", "zero", "cuda"]),
        (0, ["cuda"], ["subtract", "zero"]),
    ],
)
def test_optional_sweep_is_left_out_without_its_device(cards: int, devices: list[str], names: list[str]) -> None:
    axes = {"device": devices} if devices else {}
    loaded = config.load(CONFIGS / "quick.toml", (), 4, axes, cards)
    assert [sweep.name for sweep in loaded.sweeps] == names
    assert [sweep.get("optional", False) for sweep in loaded.resolved()["sweep"]] == [name == "cuda" for name in names]
