"""The tables of docs/findings.md, made from the newest recordings: a function for each."""

from collections import Counter
from statistics import median

import growth
from recordings import newest, ranked, recording, require, source, time_ns

from snnbench.analysis.results import Result, results_by_case
from snnbench.cases.case import Case
from snnbench.report.section import Table
from snnbench.report.text import exchange_table, markdown

MIB = 1 << 20
EAGER = {
    "norse": "norse/box",
    "rockpool": "rockpool/torch",
    "snntorch": "snntorch/unbind",
    "spikingjelly": "spikingjelly/auto",
    "torch-loop": "torch-loop/unbind",
}
"""The variant that a library's whole network is compiled from, where its name says more than the library's."""


def defaults() -> str:
    """How far the libraries' defaults are from the neuron of the standard profiles."""
    recording, rows = newest("library-defaults"), []
    for case, results in results_by_case(recording.records).items():
        own = [result for result in results if result.contender.endswith("/defaults")]
        checks = [result.distance for result in own if result.distance]
        agreeing = [1 - check["differing"] / check["compared"] for check in checks]
        cosines = [cosine for check in checks if (cosine := check["cosines"].get("weight")) is not None]
        same = sum(result.verdict == "exact" for result in own)
        spread = (f"{min(agreeing):.0%} to {max(agreeing):.0%}", f"{min(cosines):.2f} to {max(cosines):.2f}")
        rows.append([case.profile, str(len(own)), str(same), *spread])
    columns = ["profile", "libraries", "same neuron", "positions that agree", "cosine of the weights' gradients"]
    return markdown.table(Table(columns, rows)) + source(recording)


def floor() -> str:
    """How far exact contenders are from the floor, by size."""
    recording, rows = newest("neuron-share"), []
    for case, results in ranked("neuron-share", "subtract"):
        if case.time_steps != 100 or case.surrogate != "fast_sigmoid":
            continue
        ratios = sorted((time_ns(result) / result.floors_ns["train"], result.contender) for result in results)
        (low, first), (high, last) = ratios[0], ratios[-1]
        middle = median(ratio for ratio, _ in ratios)
        size = case.as_dict()["neurons"]
        rows.append([str(size), str(len(ratios)), f"{low:.2f} ({first})", f"{middle:.2f}", f"{high:.1f} ({last})"])
    columns = ["N", "exact contenders", "nearest", "median", "farthest"]
    return markdown.table(Table(columns, rows, numbers=["N", "exact contenders", "median"])) + source(recording)


def share() -> str:
    """The neuron's share of a training pass over exact contenders, by size."""
    recording, rows = newest("neuron-share"), []
    for case, results in ranked("neuron-share", "subtract"):
        if case.time_steps != 100 or case.surrogate != "fast_sigmoid":
            continue
        shares = [
            100 * s.summaries["train", "neuron_share"].median
            for s in results
            if ("train", "neuron_share") in s.summaries
        ]
        plain = next(
            100 * s.summaries["train", "neuron_share"].median for s in results if s.contender == "torch-loop/unbind"
        )
        size = case.as_dict()["neurons"]
        rows.append(
            [str(size), f"{plain:.0f} %", f"{min(shares):.0f} to {max(shares):.0f} %", f"{median(shares):.0f} %"]
        )
    return markdown.table(Table(["N", "plain PyTorch loop", "all exact contenders", "median"], rows)) + source(
        recording
    )


def tutorial() -> str:
    """Training passes of the network of the tutorials, in both resets, and as multiples of the floor."""
    times: dict[str, dict[str, Result]] = {}
    for profile in ("subtract", "zero"):
        ((_, results),) = ranked("tutorial", profile)
        for result in results:
            times.setdefault(result.contender, {})[profile] = result
    rows = []
    for contender, by_profile in sorted(times.items(), key=lambda pair: min(map(time_ns, pair[1].values()))):
        given = [by_profile.get(profile) for profile in ("subtract", "zero")]
        milliseconds = [f"{time_ns(each) / 1e6:.1f}" if each else "-" for each in given]
        over_floor = [f"{time_ns(each) / each.floors_ns['train']:.2f}" if each else "-" for each in given]
        rows.append([contender, milliseconds[0], over_floor[0], milliseconds[1], over_floor[1]])
    columns = ["library", "subtract ms", "x floor", "zero ms", "x floor"]
    return markdown.table(Table(columns, rows)) + source(newest("tutorial"))


def synaptic() -> str:
    """What a synaptic current costs: training passes with one over those without."""
    rows = []
    for profile in ("subtract", "zero", "zero-attached"):
        times = {
            (case.alpha > 0, result.contender): time_ns(result) / 1e6
            for case, results in ranked("synaptic", profile)
            for result in results
        }
        both = [name for has_one, name in times if has_one and (False, name) in times]
        for name in sorted(both, key=lambda name: times[True, name]):
            without, with_one = times[False, name], times[True, name]
            rows.append([profile, name, f"{without:.1f}", f"{with_one:.1f}", f"{with_one / without:.2f}"])
    columns = ["profile", "library", "without ms", "with ms", "ratio"]
    return markdown.table(Table(columns, rows, texts=2)) + source(newest("synaptic"))


def recurrent() -> str:
    """What a recurrent layer costs: training passes of a network with one, over the floor and over those without."""
    rows = []
    for profile in ("subtract", "zero", "zero-attached"):
        measured = {
            (case.as_dict()["widths"], case.time_steps, result.contender): result
            for case, results in ranked("recurrent", profile)
            for result in results
        }
        with_one = [key for key in measured if key[0] == "700-256R-20"]
        for _, steps, name in sorted(with_one, key=lambda key: (key[1], time_ns(measured[key]))):
            one, other = measured["700-256R-20", steps, name], measured.get(("700-256-20", steps, name))
            without = [f"{time_ns(other) / 1e6:.1f}", f"{time_ns(one) / time_ns(other):.2f}"] if other else ["-", "-"]
            over_floor = f"{time_ns(one) / one.floors_ns['train']:.2f}"
            rows.append([profile, str(steps), name, f"{time_ns(one) / 1e6:.1f}", over_floor, *without])
    columns = ["profile", "T", "library", "recurrent ms", "x floor", "without ms", "ratio"]
    return markdown.table(Table(columns, rows, texts=3)) + source(newest("recurrent"))


def trained() -> str:
    """What trained constants cost: training passes with them over those without."""
    rows = []
    for profile in ("subtract", "zero"):
        times = {
            (case.as_dict().get("trained", "none"), result.contender): time_ns(result) / 1e6
            for case, results in ranked("trained", profile)
            for result in results
        }
        for name in sorted((name for which, name in times if which == "beta"), key=lambda name: times["beta", name]):
            fixed, beta, both = (times.get((which, name)) for which in ("none", "beta", "beta-threshold"))
            given = [f"{each:.1f}" if each else "-" for each in (fixed, beta, both)]
            ratios = [f"{each / fixed:.2f}" if each and fixed else "-" for each in (beta, both)]
            rows.append([profile, name, *given, *ratios])
    columns = ["profile", "library", "fixed ms", "beta ms", "both ms", "beta ratio", "both ratio"]
    return markdown.table(Table(columns, rows, texts=2)) + source(newest("trained"))


def energy() -> str:
    """The joules of training passes on a card, and their power."""
    of_card, rows = recording("2026-11-26_core_h100"), []
    for case, results in results_by_case(of_card.records).items():
        for result in results:
            if joules := result.summaries.get(("train", "energy")):
                seconds = time_ns(result) / 1e9
                numbers = [f"{1e3 * seconds:.3g}", f"{joules.median:.3f}", f"{joules.median / seconds:.0f}"]
                require((case.time_steps, case.batch) == (100, 16), "all cells have the same steps and samples")
                rows.append([str(case.as_dict()["neurons"]), result.contender, *numbers])
    rows.sort(key=lambda row: (int(row[0]), float(row[3])))
    columns = ["N", "library", "ms", "joules", "watts beyond idle"]
    return markdown.table(Table(columns, rows, texts=2, numbers=[columns[0], *columns[2:]])) + source(of_card)


def nir() -> str:
    """The three fastest contenders of each NIR graph, over the plain loop, and how many are exact."""
    recording, rows = newest("nir"), []
    for profile in ("zero", "zero-attached"):
        for case, results in ranked("nir", profile):
            times = {result.contender: time_ns(result) / 1e6 for result in results}
            loop = times["torch-loop/unbind"]
            scan = times["jax-scan"] / loop
            is_of_images = case.row()["graph"].startswith("images")
            require((scan > 1) if is_of_images else (scan < 0.5), "jax-scan is slow in images and fast elsewhere.")
            first = [f"{name} ({times[name] / loop:.2f})" for name in sorted(times, key=lambda name: times[name])[:3]]
            name = case.row()["graph"].partition("@")[0]
            rows.append([name, profile, str(len(times)), f"{loop:.1f}", *first, *[""] * (3 - len(first))])
    rows.sort()
    columns = ["graph", "profile", "exact", "torch-loop ms", "fastest", "second", "third"]
    return markdown.table(Table(columns, rows, texts=2, numbers=columns[2:4])) + source(recording)


def importers() -> str:
    """The verdicts on the libraries' own importers of the graphs."""
    recorded = newest("nir")
    imports = [record for record in recorded.exchanges if record.measure == "import"]
    exact = Counter(record.library for record in imports if record.outcome.verdict == "exact")
    graphs = {record.case.nir_graph for record in imports}
    require(max(exact.values()) < len(graphs), "No importer runs all of the graphs.")
    return markdown.table(exchange_table.verdicts(imports)) + source(recorded)


def sparse() -> str:
    """Training passes of event-driven and dense layers, by the rate of the input."""
    names = ("fused/event", "event-driven", "fused/cpu", "torch-loop/unbind")
    times = {
        (case.as_dict()["neurons"], case.as_dict()["input_rate"], result.contender): time_ns(result) / 1e6
        for case, results in ranked("sparse", "subtract")
        for result in results
    }
    rows = []
    for neurons, rate in dict.fromkeys(key[:2] for key in sorted(times)):
        ms = [times[neurons, rate, name] for name in names]
        in_c, in_torch = ms[0] / ms[2], ms[1] / ms[3]
        rows.append([str(neurons), f"{rate:.1%}", *(f"{each:.1f}" for each in ms), f"{in_c:.2f}", f"{in_torch:.2f}"])
        if rate < 0.2:
            require(in_c < 0.6, "In C it takes less than 0.6 times the time of the dense kernel up to 10 %.")
        else:
            require(0.9 < in_c < 1.2 and in_torch > 1.3, "At 30 % in C it is level, and in PyTorch it is behind.")
        require(
            neurons == 512 or in_torch < 0.5 or rate > 0.05, "In PyTorch at 2048 it takes less than half up to 3 %."
        )
    columns = [
        "N",
        "spikes per step",
        *(f"{name.removesuffix('/unbind')} ms" for name in names),
        "C ratio",
        "torch ratio",
    ]
    return markdown.table(Table(columns, rows)) + source(newest("sparse"))


def long() -> str:
    """Training passes and peak memory of long sequences."""
    rows = []
    for profile in ("subtract", "zero", "none"):
        by_contender: dict[tuple[str, str], dict[int, Result]] = {}
        for case, results in ranked("long", profile):
            for result in results:
                by_contender.setdefault((_in_chunks(case), result.contender), {})[case.time_steps] = result
        for (chunks, name), by_steps in sorted(
            by_contender.items(), key=lambda one: (one[0][0], time_ns(one[1][min(one[1])]))
        ):
            cells = [""] * 6
            for place, count in enumerate((1000, 4000, 16000)):
                if (result := by_steps.get(count)) is not None:
                    peak = result.summaries.get(("train", "host_peak"))
                    cells[place] = f"{peak.median / MIB:.0f}" if peak else "-"
                    cells[3 + place] = f"{time_ns(result) / 1e6:.0f}"
            rows.append([profile + chunks, name, *cells])
        if profile == "none":
            fastest = min(time_ns(by_steps[4000]) for by_steps in by_contender.values())
            loop_ns = time_ns(by_contender["", "jax-scan"][4000])
            require(loop_ns == fastest, "No parallel scan is ahead of the plain loop of JAX.")
    columns = [
        "profile",
        "contender",
        *(f"{what} T={steps}" for what in ("MiB", "ms") for steps in (1000, 4000, 16000)),
    ]
    return markdown.table(Table(columns, rows, texts=2)) + source(newest("long"))


def _in_chunks(case: Case) -> str:
    """`, chunks of 250 steps, cut`; nothing for a whole sequence."""
    cut = ", cut" if case.cuts_gradient else ""
    return f", chunks of {case.chunk_steps} steps{cut}" if case.chunk_steps else ""


def memory() -> str:
    """Host memory of a training pass for each neuron and step."""
    recording = newest("temporal-fusion")
    by_case = results_by_case(recording.records)
    largest = max((case for case in by_case if case.surrogate == "sigmoid"), key=lambda case: case.updates)
    peaks = {
        result.contender: result.summaries["train", "host_peak"].median
        for result in by_case[largest]
        if result.verdict == "exact" and ("train", "host_peak") in result.summaries
    }
    rows = [
        [name, f"{peak / MIB:.0f}", f"{peak / largest.updates:.1f}"]
        for name, peak in sorted(peaks.items(), key=lambda pair: pair[1])
    ]
    about = f"{largest.kind}, {largest.sizes()}:\n\n"
    return about + markdown.table(Table(["library", "peak MiB", "bytes a neuron-step"], rows)) + source(recording)


def loading() -> str:
    """What a cache brings an epoch over event data, for each kernel of the neuron."""
    recording = newest("loading")
    seconds: dict[str, dict[str, float]] = {}
    for case, results in results_by_case(recording.records).items():
        fields = case.as_dict()
        for result in (result for result in results if result.verdict == "exact" and not fields["workers"]):
            seconds.setdefault(result.contender, {})[fields["strategy"]] = time_ns(result, "epoch") / 1e9
    rows = []
    for name, by_strategy in sorted(seconds.items(), key=lambda item: item[1]["memory"]):
        naive, disk, cached = (by_strategy[strategy] for strategy in ("naive", "disk-warm", "memory"))
        rows.append(
            [name, f"{naive:.2f}", f"{disk:.2f}", f"{cached:.2f}", f"{naive / disk:.2f}", f"{naive / cached:.2f}"]
        )
    columns = ["library", "naive s", "disk s", "memory s", "naive / disk", "naive / memory"]
    return markdown.table(Table(columns, rows)) + source(recording)


def fusion() -> str:
    """What one fused kernel over all steps brings, beside serial training."""
    recording, rows = newest("temporal-fusion"), []
    for case, results in results_by_case(recording.records).items():
        times = {s.contender: time_ns(s) for s in results if s.verdict == "exact" and ("train", "time") in s.summaries}
        if case.surrogate == "sigmoid" and {"fused/cpu", "serial/torch", "serial/kernel"} <= times.keys():
            ratios = (f"{times[name] / times['fused/cpu']:.2f}" for name in ("serial/torch", "serial/kernel"))
            rows.append([str(case.time_steps), f"{times['fused/cpu'] / 1e6:.2f}", *ratios])
    columns = ["T", "fused ms", "PyTorch step by step", "a kernel for each step"]
    return markdown.table(Table(columns, rows)) + source(recording)


def compiling() -> str:
    """What torch.compile over the whole unrolled network brings, what it costs, and where it leaves the graph."""
    recording, rows = newest("ways"), []
    for profile in ("subtract", "zero"):
        for _, results in ranked("ways", profile):
            by_name = {result.contender: result for result in results}
            for name, result in sorted(by_name.items()):
                library, _, variant = name.partition("/")
                eager = by_name.get(EAGER.get(library, library))
                if variant == "compile" and eager:
                    ratio = time_ns(eager) / time_ns(result)
                    times = (f"{time_ns(each) / 1e6:.1f}" for each in (eager, result))
                    first_s = result.summaries["train", "first_call"].median / 1e9
                    breaks = "yes" if "graph-breaks" in result.flags else "no"
                    rows.append([library, profile, *times, f"{ratio:.2f}", f"{first_s:.1f}", breaks])
    slower = [(row[0], row[6]) for row in rows if float(row[4]) <= 1]
    require(slower == [("sinabs", "yes")], "Every whole network is faster compiled, and that of Sinabs is slower.")
    columns = ["library", "profile", "eager ms", "compiled ms", "gain", "first call s", "graph breaks"]
    return markdown.table(Table(columns, rows, numbers=columns[2:6])) + source(recording)


def findings() -> dict[str, str]:
    """Every table, by the name of its function."""
    tables_of = (
        defaults,
        floor,
        share,
        tutorial,
        synaptic,
        recurrent,
        trained,
        energy,
        nir,
        importers,
        sparse,
        long,
        growth.indexing,
        growth.growth,
        growth.patched,
        memory,
        loading,
        fusion,
        compiling,
    )
    return {make.__name__: make().strip() for make in tables_of}
