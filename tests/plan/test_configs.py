"""Tests of the configs that ship: each loads, says why it exists, and holds the cells it promises."""

import itertools
import tomllib
from pathlib import Path

import pytest

from benchmarks import charts
from snnbench import measures
from snnbench.adapter import reading
from snnbench.adapter.declaration import Adapter
from snnbench.cases import case
from snnbench.cases.surrogate import FORMULAS
from snnbench.plan import config, selection

ROOT = Path(__file__).parents[2]
CONFIGS = ROOT / "configs"
QUICK = {"fused", "torch-loop", "jax-scan", "snntorch", "norse", "sinabs", "rockpool", "spikingjelly", "spyx"}
NAMED = QUICK | {"torch-compile", "jaxpike", "tracetorch", "thrindex", "brainpy", "braincog", "tether"}


@pytest.fixture(scope="module")
def adapters() -> dict[str, Adapter]:
    """The adapters that ship, read without running them."""
    return {found.name: found for found in map(reading.read, sorted((ROOT / "adapters").glob("*.py")))}


def test_quick_is_a_few_cells_of_every_library(adapters: dict[str, Adapter]) -> None:
    loaded = config.load(CONFIGS / "quick.toml", default_threads=2)
    works = config.expand(loaded, adapters)
    assert {work.library for work in works} == QUICK
    # A process takes about 2 s to start, and every contender runs once in any case.
    assert len(works) <= 13 and loaded.protocol.is_race


def test_core_covers_both_standard_profiles_on_both_devices(adapters: dict[str, Adapter]) -> None:
    works = config.expand(config.load(CONFIGS / "core.toml", default_threads=2), adapters)
    standard = {(w.case.profile, w.case.device, w.case.neurons) for w in works if w.case.time_steps == 500}
    assert standard == {("none", "cpu", 512), ("none", "cuda", 512)} | {
        (profile, device, size)
        for profile in ("subtract", "zero")
        for device, sizes in (("cpu", (512, 2048)), ("cuda", (512, 4096, 16384)))
        for size in sizes
    }
    assert {work.library for work in works} == NAMED
    attached = {work.variant for work in works if work.library == "norse" and work.case.profile == "zero-attached"}
    assert attached == {"box", "lif", "lift", "integral"}
    assert not {work for work in works if work.variant == "compile"}, "500 steps unrolled"


def test_core_is_a_few_hundred_cells_on_a_card(adapters: dict[str, Adapter]) -> None:
    loaded = config.load(CONFIGS / "core.toml", default_threads=2)
    works = [work for work in config.expand(loaded, adapters) if work.case.device == "cuda"]
    assert len(works) * (loaded.protocol.trials + loaded.protocol.memory_trials) <= 600


def test_every_cell_of_chart_is_in_one_part_of_its_benchmark(adapters: dict[str, Adapter]) -> None:
    works = config.expand(config.load(charts.CONFIG, default_threads=2), adapters)
    parts = [[work for work in works if selection.parse(part.only)(work)] for part in charts.PARTS.values()]
    assert sorted(map(works.index, itertools.chain(*parts))) == list(range(len(works)))
    assert [len(part) for part in parts] == [17, 13, 11, 10, 2, 1, 2]


def test_scaling_sweeps_one_size_at_a_time_from_one_case(adapters: dict[str, Adapter]) -> None:
    works = config.expand(config.load(CONFIGS / "scaling.toml", default_threads=2), adapters)
    cases = {work.case for work in works}
    middle = next(
        case for case in cases if (case.neurons, case.batch, case.time_steps, case.layers) == (256, 16, 100, 1)
    )
    swept = {name: {getattr(case, name) for case in cases} for name in ("neurons", "batch", "time_steps", "layers")}
    assert all(len(values) >= 3 for values in swept.values()), "an exponent wants three"
    others = [sum(getattr(case, name) != getattr(middle, name) for name in swept) for case in cases]
    assert sorted(others) == [0] + [1] * (sum(map(len, swept.values())) - 4)
    assert len(works) == len(cases) * len({(work.library, work.variant) for work in works})


def test_exam_has_every_variant_in_every_profile_and_depth(adapters: dict[str, Adapter]) -> None:
    protocol = config.load(CONFIGS / "exam.toml", default_threads=2).protocol
    assert (protocol.phases, protocol.trials, protocol.memory_trials) == ((), 1, 0)
    works = config.expand(config.load(CONFIGS / "exam.toml", default_threads=2), adapters)
    common = [work for work in works if work.case.surrogate == "fast_sigmoid" and work.case.dtype == "float32"]
    sat = {
        (w.library, w.variant, w.case.profile, w.case.sites)
        for w in common
        if w.case.time_steps == 50 and w.case.workload == "linear_lif" and not w.case.chunk_steps
    }
    contenders = [(found.name, name) for found in adapters.values() for name in found.variants]
    plain = [(library, name) for library, name in contenders if name not in ("compile", "amp", "defaults")]
    unrolled = {("snntorch", "compile-cell"), ("spyx-haiku", "documented")}
    stacked = [each for each in plain if each[1] != "compile-cell" and each[0] != "torch-compile"]
    alone = [each for each in plain if each != ("spyx-haiku", "documented") and each[0] != "torch-compile"]
    # A case of two layers includes the exam of one layer; a variant that cannot be stacked needs a case of one.
    expected = {(*each, profile, 2) for each in stacked for profile in case.PROFILES if profile != "none"}
    expected |= {(*each, "subtract", 1) for each in alone} | {(*each, "none", 1) for each in plain}
    # A compiler takes long: two layers are compiled in one profile only.
    compiled = [each for each in plain if each[0] == "torch-compile"]
    expected |= {(*each, "subtract", 2) for each in compiled}
    expected |= {(*each, p, 1) for each in compiled for p in ("zero", "subtract-detached", "zero-attached")}
    assert sat == expected
    declared = {name: {each: v for each, v in found.variants.items() if v.chunks} for name, found in adapters.items()}
    carrying = {(name, each) for name, some in declared.items() for each, v in some.items() if v.exact and not v.way}
    on_cpu = {(name, each) for name, each in carrying if "cpu" in declared[name][each].devices}
    assert {(w.library, w.variant) for w in common if w.case.chunk_steps} == on_cpu
    short = [(w.library, w.variant) for w in common if w.case.time_steps < 50 and w.case.workload == "linear_lif"]
    unrolled |= {each for each in contenders if each[1] == "compile"}
    assert sorted(short) == sorted(unrolled), "once each: it takes long"
    mixed = {(w.library, w.case.dtype) for w in works if w.variant == "amp"}
    assert mixed == {(name, dtype) for name, way in contenders if way == "amp" for dtype in ("bfloat16", "float16")}
    assert {work.library for work in works if work.case.dtype == "float64"} == {"reference", "torch-loop"}
    assert {("rockpool", "jax")} == {
        (work.library, work.variant)
        for work in works
        if work.case.surrogate == "one_sided" and work.case.time_steps == 50
    }
    shaped = {work.case.surrogate for work in works if work.library == "torch-loop"}
    assert shaped == set(FORMULAS), "the loop is examined in every surrogate"
    assert {work.library for work in works if work.case.workload == "layers"} == {
        name for name in adapters if name not in ("torch-compile", "snntorch-ipu")
    }
    dense = [work for work in works if getattr(work.case, "input_kind", "") == "gaussian"]
    assert {work.library for work in dense} >= {"fused", "torch-loop", "norse"}


def test_open_neuromorphic_has_all_published_sizes(
    adapters: dict[str, Adapter],
) -> None:
    works = config.expand(config.load(CONFIGS / "open-neuromorphic.toml", default_threads=2), adapters)
    on_gpu = [work for work in works if work.case.device == "cuda"]
    assert {work.case.neurons for work in on_gpu} == {512, 4096, 8192, 16384}
    assert {(w.case.batch, w.case.time_steps, w.case.input_gradient) for w in works} == {(16, 500, False)}
    assert {work.case.input_kind for work in works} == {"gaussian", "spikes"}
    charted = {"norse", "sinabs", "rockpool", "snntorch", "spikingjelly", "spyx", "spyx-haiku", "lava-dl"}
    assert {work.library for work in on_gpu} >= charted | {"fused", "torch-loop", "jax-scan"}
    kernels = {"sinabs/exodus", "rockpool/exodus", "spikingjelly/cupy", "spikingjelly/triton"}
    assert {f"{work.library}/{work.variant}" for work in on_gpu} >= kernels


def test_library_defaults_are_compared_with_both_profiles(
    adapters: dict[str, Adapter],
) -> None:
    works = config.expand(config.load(CONFIGS / "library-defaults.toml", default_threads=2), adapters)
    expected = {found.name for found in adapters.values() if "defaults" in found.variants}
    assert {"snntorch", "norse", "sinabs", "rockpool", "spikingjelly", "spyx", "jaxpike", "tracetorch"} <= expected
    for profile in ("subtract", "zero"):
        assert {w.library for w in works if w.variant == "defaults" and w.case.profile == profile} == expected
    for library in expected:
        assert adapters[library].variants["defaults"].deviation


def test_every_way_is_timed_beside_its_eager_variant(adapters: dict[str, Adapter]) -> None:
    works = config.expand(config.load(CONFIGS / "ways.toml", default_threads=2), adapters)
    declared = {(found.name, name) for found in adapters.values() for name, v in found.variants.items() if v.way}
    timed = {(work.library, work.variant) for work in works}
    assert declared - timed == {("snntorch", "amp")}, "which has no subtracting reset"
    eager = {(name, adapters[name].variants[way].built_as) for name, way in declared}
    assert eager <= timed


@pytest.mark.parametrize("file", sorted(CONFIGS.glob("*.toml")), ids=lambda file: file.stem)
def test_shipped_config_has_its_files_name_and_an_analysis(file: Path) -> None:
    loaded = config.load(file, default_threads=2)
    assert loaded.name == file.stem
    assert len(loaded.analysis.split()) > 30


@pytest.mark.parametrize("path", sorted(CONFIGS.glob("*.toml")), ids=lambda path: path.stem)
def test_shipped_config_sets_every_protocol_key(path: Path) -> None:
    """But for a memory limit, which depends on the machine, and what it does not ask for: a race, and measures."""
    given = tomllib.loads(path.read_text(encoding="utf-8"))["protocol"]
    assert set(config.Protocol.model_fields) - set(given) <= {"memory_limit_gib", "until", *measures.asked_for()}
