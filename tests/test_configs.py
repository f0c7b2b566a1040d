"""The configs that ship: each loads, says why it exists, and holds the cells it promises."""

from pathlib import Path

import pytest

from snnbench import adapter, case, config
from snnbench.adapter import Adapter

ROOT = Path(__file__).parent.parent
CONFIGS = ROOT / "configs"
QUICK = {"fused", "torch-loop", "jax-scan", "snntorch", "norse", "sinabs", "rockpool", "spikingjelly", "spyx"}
NAMED = QUICK | {"torch-compile"}


@pytest.fixture(scope="module")
def adapters() -> dict[str, Adapter]:
    """The adapters that ship, read without running them."""
    return {found.name: found for found in map(adapter.read, sorted((ROOT / "adapters").glob("*.py")))}


def test_quick_is_a_few_cells_of_every_library(adapters: dict[str, Adapter]) -> None:
    loaded = config.load(CONFIGS / "quick.toml")
    works = config.expand(loaded, adapters)
    assert {work.library for work in works} == QUICK
    # A process costs about 4 s to start, and the whole is to stay under 3 minutes on 2 cores.
    assert len(works) * (loaded.protocol.trials + loaded.protocol.memory_trials) <= 48


def test_core_covers_both_standard_profiles_on_both_devices(adapters: dict[str, Adapter]) -> None:
    works = config.expand(config.load(CONFIGS / "core.toml"), adapters)
    standard = {(w.case.profile, w.case.device, w.case.neurons) for w in works if w.case.time_steps == 500}
    assert standard == {
        (profile, device, size)
        for profile in ("subtract", "zero")
        for device, sizes in (("cpu", (512, 2048)), ("cuda", (512, 4096, 16384)))
        for size in sizes
    }
    assert {work.library for work in works} == NAMED
    assert {work.variant for work in works if work.library == "norse"} == adapters["norse"].variants.keys()


def test_exam_is_every_variant_in_every_profile_and_depth_untimed(adapters: dict[str, Adapter]) -> None:
    protocol = config.load(CONFIGS / "exam.toml").protocol
    assert (protocol.phases, protocol.trials, protocol.memory_trials) == ((), 1, 0)
    works = config.expand(config.load(CONFIGS / "exam.toml"), adapters)
    sat = {(w.library, w.variant, w.case.profile, w.case.layers) for w in works if w.case.surrogate == "fast_sigmoid"}
    contenders = [(found.name, variant) for found in adapters.values() for variant in found.variants]
    # Two layers sit the exam of one as well; what cannot be stacked needs a case of one.
    stacked = {(*each, profile, 2) for each in contenders for profile in case.PROFILES}
    assert sat == stacked | {(*each, "subtract", 1) for each in contenders}
    assert {work.library for work in works if work.case.dtype == "float64"} == {"reference", "torch-loop"}
    assert {work.variant for work in works if work.case.surrogate == "one_sided"} == {"jax"}


@pytest.mark.parametrize("file", sorted(CONFIGS.glob("*.toml")), ids=lambda file: file.stem)
def test_a_shipped_config_is_named_as_its_file_and_says_why(file: Path) -> None:
    loaded = config.load(file)
    assert loaded.name == file.stem
    assert len(loaded.analysis.split()) > 30
