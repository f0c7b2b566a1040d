"""Tests of sentences in the documentation that compare times: their numbers are those of committed recordings.

This file is long: it has a test for each sentence.
"""

import functools
import json
from pathlib import Path
from typing import Any

import pytest

from snnbench.analysis.epochs import epochs
from snnbench.analysis.results import Metric, Result, results_by_case
from snnbench.recording.drift import DRIFTED, relative
from snnbench.recording.reading import read
from snnbench.report.findings import find
from snnbench.report.leads import leads
from snnbench.report.section import Table
from snnbench.report.text.table import markdown
from tests.pictures import COMPILED, DEPTH, DEVICES, FUSION, LOADING, NETWORK, ROOT, SHARE, TABLE_1, TRAINING
from tests.plan.test_configs_readme import NETWORKS
from tests.plan.test_configs_readme import PUBLISHED as OF_TABLE_1
from tests.shipped import QUICK, RESULTS

TIME, PEAK = ("train", "time"), ("train", "host_peak")
PAGES = ROOT / "docs" / "explanations"


SHOWN: dict[str, set[str]] = {}
"""Page -> the sentences and tables that a test expected on it and found there, their words separated by one space.

tests/test_numbers.py runs these tests, and holds each recorded number of a page against them.
"""


class Page(str):
    """The text of a page, which notes what a test finds in it."""

    name: str

    def __contains__(self, expected: str) -> bool:  # type: ignore[override]
        if not super().__contains__(expected):
            return False
        SHOWN.setdefault(self.name, set()).add(" ".join(expected.split()))
        return True


def whole(name: str) -> Page:
    """A page of explanations, line by line."""
    text = Page((PAGES / name).read_text(encoding="utf-8"))
    text.name = name
    return text


def page(name: str) -> Page:
    """The words of a page of explanations, separated by one space."""
    text = Page(" ".join(whole(name).split()))
    text.name = name
    return text


@functools.cache
def cells(recording: Path) -> dict[tuple[Any, str], Result]:
    """The results of a recording by case and contender."""
    by_case = results_by_case(read(recording).records)
    return {(case, result.contender): result for case, results in by_case.items() for result in results}


def ratios(recording: Path, contender: str, metric: Metric, least_steps: int = 1) -> list[float]:
    """The ratio of a contender to `fused` in each case with a number of time steps."""
    known = cells(recording)
    return [
        result.summaries[metric].median / known[case, "fused/cpu"].summaries[metric].median
        for (case, name), result in known.items()
        if name == contender and case.time_steps >= least_steps
    ]


def grown(metric: Metric) -> list[float]:
    """The ratio of 16 layers to one, of each contender in each kind of case of `depth`."""
    known = cells(DEPTH)
    return [
        result.summaries[metric].median / known[case.with_(layers=1), name].summaries[metric].median
        for (case, name), result in known.items()
        if case.layers == 16
    ]


def test_growth_with_depth() -> None:
    times, peaks = grown(TIME), grown(PEAK)
    expected = f"take {min(times):.0f} to {max(times):.0f} times the time of one layer, and {min(peaks):.1f} to"
    assert f"{expected} {max(peaks):.0f} times the peak memory" in page("work.md")


def test_price_of_each_split() -> None:
    known = cells(DEVICES)
    shares = {
        (name.partition("/")[2], case.time_steps): result.summaries[TIME].median
        / known[case.with_(devices=1), name].summaries[TIME].median
        for (case, name), result in known.items()
        if case.devices == 2
    }
    pipeline = [f"{shares['temporal', steps]:.2f} times" for steps in (256, 64, 16)]
    expected = "two devices takes {} the time of one, at T = 64 it takes {}, and at T = 16 {}".format(*pipeline)
    assert expected in page("literature.md")
    plain = [share for (split, _), share in shares.items() if split != "temporal"]
    assert f"takes {min(plain):.2f} to {max(plain):.2f} times the time of one device" in page("literature.md")
    assert all(result.verdict == "exact" for result in known.values())


STEPPED = ("snntorch/step", "norse/lift")


def of_network() -> tuple[str, ...]:
    """Ranges of training times of ResNets in PyTorch: over the floor, and over the plain loop.

    Those over the plain loop are of the kernel, of libraries layer by layer, and of libraries step by step.
    """
    every = {key: result for key, result in cells(NETWORK).items() if key[0].dtype == "float32"}
    assert all(result.verdict == "exact" for result in every.values())
    results = {key: result for key, result in every.items() if key[1] != "jax-scan"}
    results = {key: result for key, result in results.items() if key[0].model == "spiking-resnet18"}
    assert len({name for _, name in results} - {"fused/cpu", "torch-loop/unbind", *STEPPED}) == 5
    times = {key: result.summaries[TIME].median for key, result in results.items()}
    floors = [times[key] / result.floors_ns["train"] for key, result in results.items() if key[1] not in STEPPED]
    loops = {case: ns for (case, name), ns in times.items() if name == "torch-loop/unbind"}
    fused = [ns / loops[case] for (case, name), ns in times.items() if name == "fused/cpu"]
    known = ("fused/cpu", "torch-loop/unbind", *STEPPED)
    others = [ns / loops[case] for (case, name), ns in times.items() if name not in known]
    stepped = [ns / loops[case] for (case, name), ns in times.items() if name in STEPPED]
    return f"{min(floors):.1f} to {max(floors):.1f}", *(
        f"{min(each):.2f} to {max(each):.2f}" for each in (fused, others, stepped)
    )


def test_share_of_the_neuron_in_a_network() -> None:
    over_floor, fused, others, stepped = of_network()
    assert f"takes {over_floor} times the floor" in page("work.md")
    assert f"takes {fused} times the time of `torch-loop`" in page("work.md")
    assert f"the five libraries {others} times" in page("work.md")
    assert f"Step by step it takes {stepped} times" in page("work.md")


def test_networks_under_autocast_are_equivalent() -> None:
    results = {key: result for key, result in cells(NETWORK).items() if key[0].dtype == "bfloat16"}
    assert {result.verdict for result in results.values()} == {"equivalent"}
    assert {name for _, name in results if name.endswith("/amp")} == {
        *("torch-loop/amp", "norse/amp", "sinabs/amp", "spikingjelly/amp")
    }


def test_convolutions_of_xla_take_most_of_a_network_in_jax() -> None:
    by_name = {name: (case, result) for (case, name), result in cells(NETWORK).items() if name == "jax-scan"}
    case, result = by_name["jax-scan"]
    ratio = result.summaries[TIME].median / cells(NETWORK)[case, "torch-loop/unbind"].summaries[TIME].median
    assert f"takes {ratio:.1f} times the time of `torch-loop`; XLA's convolutions" in page("work.md")
    records = [record for record in read(NETWORK).records if record.library == "jax-scan" and record.phases]
    assert max(record.phases["train"]["times_floor"] for record in records) < 2


def test_nothing_to_fuse_in_one_step() -> None:
    known = cells(FUSION)
    (ratio,) = (
        result.summaries[TIME].median / known[case, "fused/cpu"].summaries[TIME].median
        for (case, name), result in known.items()
        if name == "serial/kernel" and case.time_steps == 1
    )
    assert f"and the serial kernel takes {ratio:.2f} times the time of `fused`." in page("literature.md")


def test_speed_up_of_temporal_fusion() -> None:
    torch, kernel = (ratios(FUSION, f"serial/{name}", TIME, least_steps=4) for name in ("torch", "kernel"))
    assert f"is {min(torch):.1f} to {max(torch):.1f} times as fast as serial steps in PyTorch" in page("literature.md")
    assert f"and {min(kernel):.1f} to {max(kernel):.1f} times as fast as serial kernels" in page("literature.md")
    assert max(torch) < 8 and "No T reaches 8 times." in page("literature.md")


@pytest.mark.parametrize("metric", [TIME, PEAK])
def test_fused_is_ahead_of_every_other_contender(metric: Metric) -> None:
    others = {name for (_, name), result in cells(FUSION).items() if result.summaries and not name.startswith("fused")}
    assert {"serial/torch", "serial/kernel", "spikingjelly/auto", "snntorch/unbind"} == others
    assert min(ratio for name in others for ratio in ratios(FUSION, name, metric, least_steps=4)) > 1
    assert all(result.verdict == "exact" for result in cells(FUSION).values() if result.summaries)


def test_table_1_on_a_cpu() -> None:
    known = cells(TABLE_1)
    words = []
    for name in ("spikingjelly/auto", "spikingjelly/old-torch", "serial/torch"):
        over = ratios(TABLE_1, name, TIME)
        words.append(f"{min(over):.2f} to {max(over):.2f} times")
    assert {result.verdict for result in known.values()} == {"exact"}
    assert len(known) == 12, "three networks, four contenders"
    text = page("literature.md")
    assert f"{words[0]} the time of `fused` for SpikingJelly 2.0.0, {words[1]} for its old release" in text
    assert f"and {words[2]} for `serial/torch`" in text
    level = {(case.model, name) for case, lead in leads(find(read(TABLE_1))).items() for name in lead.names[1:]}
    uncertain = {("spiking-resnet18", "spikingjelly/auto"), ("spiking-resnet50", "spikingjelly/auto")}
    assert level == uncertain | {("spiking-resnet18", "serial/torch")}
    of_each = "those of SpikingJelly 2.0.0 with ResNet18 and ResNet50, and that of `serial/torch` with ResNet18"
    assert f"three of these nine differences are not certain: {of_each}" in text


PUBLISHED = {
    ("RTX 3080", "Sinabs"): (132.38, 129.10, 132.78),
    ("RTX 3080", "EXODUS"): (90.73, 14.26, 8.86),
    ("RTX 2070", "Sinabs"): (194.96, 195.04, 191.80),
    ("RTX 2070", "EXODUS"): (108.32, 19.70, 16.58),
}
"""Seconds of an epoch by Lenz: naive, from a warm cache on the disk, from sparse tensors on the card."""


def rows_of_table_1() -> list[str]:
    """The rows of table 1: epochs of the paper over those of temporal fusion, and passes here over those of `fused`."""
    published = {row[1]: [float(seconds) for seconds in row[2:5]] for row in OF_TABLE_1 if row[0] == "CIFAR-10"}
    known, rows = cells(TABLE_1), []
    for network, model in NETWORKS.items():
        by_torch, by_cupy, by_fusion = published[network]
        case = next(case for case, _ in known if case.model == model)
        *others, fused = (
            known[case, name].summaries[TIME].median
            for name in ("spikingjelly/old-torch", "spikingjelly/auto", "serial/torch", "fused/cpu")
        )
        ratios = by_torch / by_fusion, by_cupy / by_fusion, *(each / fused for each in others)
        rows.append(f"| {network} | {' | '.join(f'{ratio:.2f}' for ratio in ratios)} |")
    return rows


def test_table_1_beside_the_published_one() -> None:
    assert "\n".join(rows_of_table_1()) in whole("literature.md")


def rows_of_loading() -> list[str]:
    """The rows of the table of loading: published epochs, and those of the recording."""
    rows = []
    for (card, library), (naive, disk, device) in PUBLISHED.items():
        rows.append(f"| {card} | {library} | {naive:.2f} | {naive / disk:.2f} | {naive / device:.2f} | - |")
    (group,) = epochs(results_by_case(read(LOADING).records)).values()
    seconds = {(epoch.contender, epoch.strategy): epoch.epoch_ns / 1e9 for epoch in group if not epoch.workers}
    for name in ("sinabs", "spikingjelly/auto", "torch-loop/unbind", "fused/cpu"):
        naive = seconds[name, "naive"]
        others = (naive / seconds[name, strategy] for strategy in ("disk-warm", "device-sparse", "memory"))
        rows.append(f"| 2 CPUs | {name} | {naive:.2f} | {' | '.join(f'{ratio:.2f}' for ratio in others)} |")
    return rows


def test_loading_beside_the_published_figure() -> None:
    text = whole("literature.md")
    assert "\n".join(rows_of_loading()) in text
    assert {result.verdict for result in cells(LOADING).values()} == {"exact"}


def test_caches_of_a_fast_and_a_slow_network() -> None:
    (group,) = epochs(results_by_case(read(LOADING).records)).values()
    seconds = {(epoch.contender, epoch.strategy): epoch.epoch_ns for epoch in group if not epoch.workers}
    fused, sinabs = (seconds[name, "naive"] / seconds[name, "memory"] for name in ("fused/cpu", "sinabs"))
    expected = f"with `fused` the epoch from memory is {fused:.2f} times as fast, and with Sinabs {sinabs:.2f} times"
    assert expected in page("literature.md")


def test_compiled_networks() -> None:
    results = {name: result for (_, name), result in cells(COMPILED).items()}
    plain, whole, library = (
        results[name] for name in ("torch-loop/unbind", "torch-loop/compile", "spikingjelly/compile")
    )
    train, inference = (
        whole.summaries[phase, "time"].median / plain.summaries[phase, "time"].median
        for phase in ("train", "inference")
    )
    other = library.summaries[TIME].median / plain.summaries[TIME].median
    first_s, other_s = (each.summaries["train", "first_call"].median / 1e9 for each in (whole, library))
    text = page("work.md")
    assert f"of `torch-loop` takes {train:.2f} times the time without it, and inference {inference:.2f} times" in text
    assert f"Its first call takes {first_s:.0f} s." in text
    assert f"takes {other:.2f} times the training time of the uncompiled `torch-loop`" in text
    assert f"and its first call {other_s:.0f} s." in text


def test_cost_of_indexing() -> None:
    times_ms = {
        name: result.summaries[TIME].median / 1e6
        for (case, name), result in cells(SHARE).items()
        if (case.as_dict()["neurons"], case.time_steps, case.profile) == (2048, 100, "subtract") and result.summaries
    }
    index, unbind = (f"{times_ms[f'torch-loop/{name}']:.0f} ms with" for name in ("index", "unbind"))
    expected = f"a training pass of the same loop took {index} the index and {unbind} `unbind`"
    assert f"with N = 2048, T = 100 and the profile `subtract`, {expected}" in page("alternatives.md")


def outcome(name: str) -> list[dict[str, Any]]:
    """The tables of a recorded benchmark."""
    path = ROOT / "benchmarks" / "outcomes" / f"{name}_epyc-2cpu.json"
    tables: list[dict[str, Any]] = json.loads(path.read_text(encoding="utf-8"))["tables"]
    return tables


def test_error_rates_are_the_simulated_ones() -> None:
    compared, ranked, chance, intervals = outcome("errors")
    text = whole("statistics.md")
    for table in (compared, ranked, intervals):
        assert markdown(Table(table["columns"], table["rows"])) in text, table["title"]
    ((passed, slower),) = [row[-2:] for row in chance["rows"] if row[0] == "5"]
    expected = f"the threshold in {passed} of simulations (`python -m benchmarks errors`). In {slower} the cell gets"
    assert expected.replace("%", " %") in page("statistics.md")
    two, three, five = (min(row[1:], key=lambda share: int(share.rstrip("%"))) for row in intervals["rows"])
    expected = f"as rarely as {two} of the time with 2 trials, {three} with 3, and {five} with 5"
    assert expected.replace("%", " %") in page("measurement.md")


def test_levels_and_probes_of_quick() -> None:
    records = [record for record in read(RESULTS / QUICK).records if record.measure == "time"]
    levels = [level.all for level in relative(records).values()]
    span = f"range from {min(levels):.2f} to {max(levels):.2f}, and no cell is flagged"
    assert f"In the recording `results/{QUICK}` the divided levels {span}" in page("measurement.md")
    assert not any(DRIFTED in record.flags for record in records)
    torch_ms, jax_ms = (
        [record.settings["probes_ms"] for record in records if ("torch" in record.settings) is of_torch]
        for of_torch in (True, False)
    )
    taken = f"take {min(torch_ms)} to {max(torch_ms)} ms of a process in torch, and {min(jax_ms)} to {max(jax_ms)} ms"
    assert f"In the same recording both looks together {taken} in JAX" in page("measurement.md")


def test_parts_of_a_small_pass() -> None:
    (table,) = outcome("limit")
    rows = {int(row[0]): dict(zip(table["columns"], row, strict=True)) for row in table["rows"]}
    text, least = page("alternatives.md"), rows[16]
    assert f"N = 16, a pass takes {least['x floor']} times as long as its three products" in text
    assert f"{least['outside us']} of its {least['pass us']} µs pass outside of the C calls" in text
    assert f"torch.autograd.Function in Python that computes nothing takes {least['empty us']}." in text
    assert f"At N = 512 the ratio is {rows[512]['x floor']}, and at N = 2048 it is {rows[2048]['x floor']}." in text


def test_least_host_memory() -> None:
    tables = [table for name in ("memory", "memory-2048", "memory-long") for table in outcome(name)]
    rows = [row for table in tables for row in table["rows"]]
    case, *_, other, _, ratio = min(rows, key=lambda row: float(row[-1]))
    profile, neurons, steps = case.replace("=", " = ").split(", ")
    assert float(ratio) > 1
    expected = f"`{other}`, takes {ratio} times as much at {neurons} and {steps} in the profile `{profile}`."
    assert expected in page("alternatives.md")


def test_a_pass_beside_a_busy_process() -> None:
    alone, beside = (
        {row[0]: row[1] for row in table["rows"]}["subtract, N=512, T=25"] for table in outcome("contenders")
    )
    expected = f"`fused/cpu` took {beside} ms at N = 512 and T = 25, and {alone} ms without that process"
    assert expected in page("alternatives.md")


def test_slow_passes_beside_a_busy_process() -> None:
    beside = [outcome(name)[1]["rows"] for name in ("contenders", "contenders-2048", "contenders-long")]
    behind = {row[0]: row[2:] for rows in beside for row in rows if float(row[-1]) < 0.95}
    near = {row[0]: row[-1] for row in outcome("contenders-near")[1]["rows"]}
    subtract, zero = (f"{profile}, N=2048, T=100" for profile in ("subtract", "zero"))
    assert set(behind) <= set(near), "measured again in more rounds"
    assert min(map(float, near.values())) >= 0.95
    text, (name, ratio) = page("alternatives.md"), behind[subtract]
    assert (
        f"takes {near[subtract]} times as long as `fused/cpu` in the profile `subtract`, and {near[zero]} times" in text
    )
    assert f"`{name}` took {ratio} times as long in them" in text


def test_contenders_on_a_zen_4() -> None:
    five, fifteen = (
        [{row[0]: row for row in table["rows"]} for table in outcome(f"contenders{name}-zen4")]
        for name in ("", "-near")
    )
    assert [list(rows) for rows in fifteen] == [list(rows) for rows in five], "every case in more rounds"
    rows = [row for table in five for row in table.values()]
    near = {"jax-scan", "spyx-haiku/time-major", "brainpy/outside", "jaxpike/unroll-1"}
    assert {row[-2] for row in rows if float(row[-1]) < 1} <= near
    behind = sum(float(row[-1]) < 0.95 for row in rows)
    alone, beside = (min((row[-1] for row in table.values()), key=float) for table in fifteen)
    text = page("alternatives.md")
    assert f"On a Zen 4, at N = 16 to 512, {behind} of {len(rows)} rows of five rounds are below 0.95." in text
    assert (
        f"the fastest of the four nearest contenders takes at least {alone} times as long as `fused/cpu`, and at least "
        f"{beside} times beside one busy process." in text
    )


def test_pieces_beside_pieces_of_a_linear_layer() -> None:
    spikes, training = ({row[0]: (row[3], row[5]) for row in table["rows"]} for table in outcome("streaming"))
    text = page("alternatives.md")
    assert f"At N = 512 it takes {training['512'][0]} times as long now" in text
    assert f"training on four pieces of 25 steps takes {training['16'][0]} times as long as on the whole" in text
    assert f"without neurons, takes {training['16'][1]} times as long in four pieces" in text
    assert f"Without gradients the two ratios are {' and '.join(spikes['16'])} (" in text


def test_learning_in_the_recording_of_training() -> None:
    groups = epochs(results_by_case(read(TRAINING).records)).values()
    accuracies = [epoch.accuracy for group in groups for epoch in group]
    assert f"{min(accuracies):.1%} to {max(accuracies):.1%}".replace("%", " %") in page("loading.md")
    assert {result.verdict for result in cells(TRAINING).values()} == {"exact"}
