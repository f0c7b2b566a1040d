"""The numbers of explanations and guides: from recordings, outcomes of benchmarks and constants of the code.

Each function is named as its parts are, and says what it is about. Words of a page that depend on the recording, such
as "all are exact", are required of it here.
"""

from collections.abc import Callable, Iterable, Mapping
from statistics import median, quantiles

from recordings import RESULTS, benchmark, exact, newest, recording, require, results, time_ns

from snnbench.analysis import race
from snnbench.analysis.epochs import Epoch, epochs
from snnbench.analysis.results import Metric, Result, results_by_case
from snnbench.cases.case import Case
from snnbench.measures.memory import worker as memory
from snnbench.measures.neuron_share import report as neuron_shares
from snnbench.measures.probes import worker as probes
from snnbench.proof import scan
from snnbench.proof.fresh import CHANCE, CHANCE_OF_EACH, SERIES_NS, SLACK_IN_A_ROW_NS, SLACK_NS
from snnbench.proof.phase_proof import PLACES
from snnbench.proof.tolerance import RATE_WINDOW
from snnbench.recording.drift import DRIFTED, FACTOR, relative
from snnbench.recording.flags import LEAST_GROWTH_BYTES
from snnbench.report.answer import leads
from snnbench.report.overview import find
from snnbench.report.section import Report, Table
from snnbench.report.site import published
from snnbench.report.text import exchange_table, recording_tables
from snnbench.report.text.markdown import markdown, table
from snnbench.worker import contention, timed_phase
from snnbench.worker.durations import median_ns
from snnbench.worker.floor import LARGEST_SPREAD, SMALLEST_SPREAD

Known = Mapping[tuple[Case, str], Result]
"""Results by case and contender."""
TIME, PEAK = ("train", "time"), ("train", "host_peak")
STEPPED = ("snntorch/step", "norse/lift")
"""The contenders that run a network step by step."""
NETWORKS = {"ResNet18": "spiking-resnet18", "ResNet34": "spiking-resnet34", "ResNet50": "spiking-resnet50"}


def span(values: Iterable[float], digits: int = 2) -> str:
    """The least and the largest of these numbers, or one number if they are written alike."""
    ordered = sorted(values)
    return " to ".join(dict.fromkeys(f"{each:.{digits}f}" for each in (ordered[0], ordered[-1])))


def percent(share: float) -> str:
    """A share as the pages write it."""
    return f"{100 * share:g} %"


def grown(known: Known, metric: Metric) -> list[float]:
    """The ratio of 16 layers to one, of each contender in each kind of case."""
    return [
        result.summaries[metric].median / known[case.with_(layers=1), name].summaries[metric].median
        for (case, name), result in known.items()
        if case.as_dict().get("layers") == 16
    ]


def over_fused(known: Known, contender: str, metric: Metric = TIME, least_steps: int = 1) -> list[float]:
    """The ratio of a contender to `fused` in each case of so many time steps."""
    return [
        result.summaries[metric].median / known[case, "fused/cpu"].summaries[metric].median
        for (case, name), result in known.items()
        if name == contender and case.time_steps >= least_steps
    ]


def depth() -> dict[str, str]:
    """What a pass of 16 layers takes over that of one layer."""
    known = results("2026-11-23_depth_epyc-2cpu")
    peaks = sorted(grown(known, PEAK))
    return {"times": span(grown(known, TIME), digits=0), "peaks": f"{peaks[0]:.1f} to {peaks[-1]:.0f}"}


def network() -> dict[str, str]:
    """Training times of a ResNet18: over the floor, and over the plain loop."""
    name = "2026-11-25_network_xeon-2cpu"
    known = {
        key: result
        for key, result in results(name).items()
        if key[0].dtype == "float32" and key[0].as_dict()["model"] == "spiking-resnet18"
    }
    require(exact(known), "exact at every site")
    loops = {case: time_ns(result) for (case, contender), result in known.items() if contender == "torch-loop/unbind"}
    over_loop: dict[str, list[float]] = {}
    for (case, contender), result in known.items():
        over_loop.setdefault(contender, []).append(time_ns(result) / loops[case])
    (jax,), fused = over_loop.pop("jax-scan"), over_loop.pop("fused/cpu")
    stepped = [ratio for contender in STEPPED for ratio in over_loop.pop(contender)]
    over_loop.pop("torch-loop/unbind")
    require(len(over_loop) == 5, "the five libraries")
    over_floor = [
        time_ns(result) / result.floors_ns["train"]
        for (_, contender), result in known.items()
        if contender not in ("jax-scan", *STEPPED)
    ]
    own_floor = [
        record.phases["train"]["times_floor"]
        for record in recording(name).records
        if record.library == "jax-scan" and record.phases
    ]
    require(max(own_floor) < 2, "XLA's convolutions by themselves take most of it")
    others = [ratio for ratios in over_loop.values() for ratio in ratios]
    ratios = {"fused": span(fused), "others": span(others), "stepped": span(stepped), "jax": f"{jax:.1f}"}
    return {"floors": span(over_floor, digits=1), **ratios}


def sew() -> dict[str, str]:
    """Training times of a SEW-ResNet18."""
    return _of_network("2026-11-30_sew_epyc-2cpu")


def spikformer() -> dict[str, str]:
    """Training times of a small Spikformer."""
    return _of_network("2026-11-30_spikformer_epyc-2cpu")


def _of_network(name: str) -> dict[str, str]:
    """Training times of a network over the floor and over the plain loop, and those of SpikingJelly in milliseconds."""
    known = results(name)
    require(exact(known), "exact at every site")
    loops = {case: time_ns(result) for (case, contender), result in known.items() if contender == "torch-loop/unbind"}
    over_loop = {key: time_ns(result) / loops[key[0]] for key, result in known.items()}
    fused = [ratio for (_, contender), ratio in over_loop.items() if contender == "fused/cpu"]
    ours = ("fused/cpu", "torch-loop/unbind")
    others = [ratio for (_, contender), ratio in over_loop.items() if contender not in ours]
    over_floor = [time_ns(result) / result.floors_ns["train"] for result in known.values()]
    library = [time_ns(result) / 1e6 for (_, contender), result in known.items() if contender == "spikingjelly/auto"]
    return {
        "floors": span(over_floor, digits=1),
        "fused": span(fused),
        "others": span(others),
        "library": f"{span(library, digits=0)} ms",
    }


def compiled() -> dict[str, str]:
    """What torch.compile brings a small network, over the plain loop without it, and what its first call costs."""
    known = {name: result for (_, name), result in results("2026-11-25_network_epyc-2cpu").items()}
    plain, whole = known["torch-loop/unbind"], known["torch-loop/compile"]
    library = known["spikingjelly/compile"]
    return {
        "train": f"{time_ns(whole) / time_ns(plain):.2f}",
        "inference": f"{time_ns(whole, 'inference') / time_ns(plain, 'inference'):.2f}",
        "first_call": f"{whole.summaries['train', 'first_call'].median / 1e9:.0f} s",
        "library": f"{time_ns(library) / time_ns(plain):.2f}",
        "library_first_call": f"{library.summaries['train', 'first_call'].median / 1e9:.0f} s",
    }


def fusion() -> dict[str, str]:
    """What one fused kernel over all time steps brings."""
    known = {key: result for key, result in results("2026-11-23_temporal-fusion_epyc-2cpu").items() if result.summaries}
    others = {name for _, name in known if not name.startswith("fused")}
    ahead = [min(over_fused(known, name, metric, least_steps=4)) > 1 for name in others for metric in (TIME, PEAK)]
    require(all(ahead) and exact(known), "`fused` is ahead of every contender for these T, in time and in memory")
    torch, kernel = (over_fused(known, f"serial/{name}", least_steps=4) for name in ("torch", "kernel"))
    require(max(torch) < 8, "No T reaches 8 times.")
    (one_step,) = (
        time_ns(result) / time_ns(known[case, "fused/cpu"])
        for (case, name), result in known.items()
        if name == "serial/kernel" and case.time_steps == 1
    )
    return {"torch": span(torch, digits=1), "kernel": span(kernel, digits=1), "one_step": f"{one_step:.2f}"}


def table_1() -> dict[str, str]:
    """Training passes of table 1 of the temporal fusion paper over those of `fused`, and the paper's epochs."""
    name = "2026-11-24_temporal-fusion-table1_epyc-2cpu"
    known, contenders = results(name), ("spikingjelly/old-torch", "spikingjelly/auto", "serial/torch")
    require(exact(known), "All are exact at every site.")
    level = {
        (case.as_dict()["model"], each)
        for case, lead in leads(find(recording(name))).items()
        for each in lead.names[1:]
    }
    uncertain = {*((NETWORKS[each], "spikingjelly/auto") for each in ("ResNet18", "ResNet50"))}
    uncertain |= {(NETWORKS["ResNet18"], "serial/torch")}
    require(level == uncertain, "three of these nine differences are not certain")
    rows = []
    seconds = published_seconds("temporal-fusion-table1")
    for network, model in NETWORKS.items():
        case = next(case for case, _ in known if case.as_dict()["model"] == model)
        fusion, cupy, serial_torch = seconds[f"CIFAR-10, {network}"].values()
        here = (time_ns(known[case, each]) / time_ns(known[case, "fused/cpu"]) for each in contenders)
        rows.append([network, *(f"{ratio:.2f}" for ratio in (serial_torch / fusion, cupy / fusion, *here))])
    columns = (
        *("network", "paper, SpikingJelly PyTorch", "paper, SpikingJelly CuPy"),
        *("here, SpikingJelly's old release", "here, SpikingJelly 2.0.0", "here, `serial/torch`"),
    )
    old, new, serial = (span(over_fused(known, each)) for each in contenders)
    return {"old": old, "new": new, "serial": serial, "table": table(Table(columns, rows))}


def published_seconds(name: str) -> dict[str, dict[str, float]]:
    """The seconds that a document published, by group and row."""
    return {group.name: {row.name: row.seconds for row in group.row} for group in published.load(name).group}


def devices() -> dict[str, str]:
    """Training passes of two devices over those of one: of the pipeline by time steps, and of plain splits."""
    known = results("2026-11-23_devices_epyc-2cpu")
    require(exact(known), "the work is the same")
    shares = {
        (name.partition("/")[2], case.time_steps): time_ns(result) / time_ns(known[case.with_(devices=1), name])
        for (case, name), result in known.items()
        if case.as_dict()["devices"] == 2
    }
    pipeline = {f"pipeline_{steps}": f"{shares['temporal', steps]:.2f}" for steps in (256, 64, 16)}
    return {**pipeline, "plain": span(share for (split, _), share in shares.items() if split != "temporal")}


def timed_epochs(name: str) -> list[Epoch]:
    """The epochs of a recording."""
    return [epoch for group in epochs(results_by_case(recording(name).records)).values() for epoch in group]


def loading() -> dict[str, str]:
    """What caches bring an epoch, in the figure of Lenz and in a recording."""
    name = "2026-11-25_loading_xeon-2cpu"
    require(exact(results(name)), "all strategies have the same losses")
    rows = []
    for group, each in published_seconds("loading").items():
        naive, disk, device = each.values()
        rows.append([*group.split(", "), f"{naive:.2f}", f"{naive / disk:.2f}", f"{naive / device:.2f}", "-"])
    first_here = len(rows)
    seconds = {(each.contender, each.strategy): each.epoch_ns / 1e9 for each in timed_epochs(name) if not each.workers}
    for contender in ("sinabs", "spikingjelly/auto", "torch-loop/unbind", "fused/cpu"):
        naive = seconds[contender, "naive"]
        ratios = (naive / seconds[contender, strategy] for strategy in ("disk-warm", "device-sparse", "memory"))
        rows.append(["2 CPUs", contender, f"{naive:.2f}", *(f"{ratio:.2f}" for ratio in ratios)])
    columns = ("machine", "library", "naive s", "naive over disk-warm", "naive over device-sparse", "naive over memory")
    return {"table": table(Table(columns, rows, texts=2)), "fused": rows[-1][-1], "sinabs": rows[first_here][-1]}


def training() -> dict[str, str]:
    """How many samples the trained networks classify correctly."""
    name = "2026-11-24_training_epyc-2cpu"
    require(exact(results(name)), "All are exact.")
    accuracies = sorted(100 * epoch.accuracy for epoch in timed_epochs(name) if epoch.accuracy is not None)
    return {"accuracy": f"{accuracies[0]:.1f} % to {accuracies[-1]:.1f} %"}


def neuron_share() -> dict[str, str]:
    """The neuron's share by size, and passes of a loop that indexes the current, and of one that unbinds it."""
    name = "2026-11-25_neuron-share_epyc-2cpu"
    ms = {
        contender: time_ns(result) / 1e6
        for (case, contender), result in results(name).items()
        if (case.as_dict()["neurons"], case.time_steps, case.profile) == (2048, 100, "subtract") and result.summaries
    }
    passes = {variant: f"{ms[f'torch-loop/{variant}']:.0f} ms" for variant in ("index", "unbind")}
    return {**passes, "table": table(neuron_shares.table(results_by_case(recording(name).records), "train"))}


def nir() -> dict[str, str]:
    """What importers and exporters make of small graphs."""
    recorded = newest("exchange")
    return {"tables": markdown(Report(sections=[exchange_table.section(recorded.exchanges)]))}


def quick() -> dict[str, str]:
    """The levels of the machine in a recording, and the time that both looks of the probes take."""
    records = [record for record in recording("2026-11-27_quick_epyc-2cpu").records if record.measure == "time"]
    require(not any(DRIFTED in record.flags for record in records), "no cell is flagged")
    torch_ms, jax_ms = (
        [record.settings["probes_ms"] for record in records if ("torch" in record.settings) is of_torch]
        for of_torch in (True, False)
    )
    levels = span(level.all for level in relative(records).values())
    return {"levels": levels, "torch": f"{span(torch_ms, 0)} ms", "jax": f"{span(jax_ms, 0)} ms"}


def report() -> dict[str, str]:
    """The tables of `snnbench report`."""
    names = {"quick": "2026-11-27_quick_epyc-2cpu", "defaults": "2026-11-25_library-defaults_epyc-2cpu"}
    return {mark: markdown(recording_tables.report(recording(name)), level=3) for mark, name in names.items()}


def errors() -> dict[str, str]:
    """Error rates of simulated comparisons, rankings and intervals."""
    compared, ranked, intervals = benchmark("errors")
    rarely = (min(row[1:], key=lambda share: int(share.rstrip("%"))) for row in intervals["rows"])
    shares = dict(zip(("two", "three", "five"), rarely, strict=True))
    tables = {"compared": compared, "ranked": ranked, "intervals": intervals}
    return {name: share.replace("%", " %") for name, share in shares.items()} | {
        name: table(Table(each["columns"], each["rows"])) for name, each in tables.items()
    }


def steps() -> dict[str, str]:
    """Error rates of steps in simulated histories."""
    (simulated,) = benchmark("steps")
    independent = [row[2] for row in simulated["rows"] if row[1].startswith("independent")]
    worst = max(independent, key=lambda share: float(share.rstrip("%")))
    require(float(worst.rstrip("%")) <= 1, "at most 1 % of series show a false step")
    return {"worst": worst.replace("%", " %"), "table": table(Table(simulated["columns"], simulated["rows"], texts=2))}


def races() -> dict[str, str]:
    """Error rates of simulated races, and the spread of the ratios of trials."""
    made_up, recorded, ratios = benchmark("race", "xeon-2cpu")
    wrong = max((row[1] for row in made_up["rows"]), key=lambda share: float(share.rstrip("%")))
    of_recordings = max((row[2] for row in recorded["rows"]), key=lambda share: float(share.rstrip("%")))
    beyond = dict(ratios["rows"])[f"beyond {race.FACTOR:g}"]
    shares = {"wrong": wrong, "of_recordings": of_recordings, "beyond": beyond}
    return {name: share.replace("%", " %") for name, share in shares.items()} | {
        "table": table(Table(made_up["columns"], made_up["rows"]))
    }


def first_calls() -> dict[str, str]:
    """First calls in all recordings, as multiples of the median pass, of passes on a CPU that take over a second."""
    ratios = []
    for path in sorted(RESULTS.glob("*/records.jsonl")):
        for record in recording(path.parent.name).records:
            for phase, timing in record.phases.items() if record.case.device == "cpu" else ():
                if phase in ("inference", "forward", "backward", "train") and (pass_ns := median_ns(timing)) > 1e9:
                    ratios.append(timing["first_call_ns"] / pass_ns)
    return {"count": str(len(ratios)), "median": f"{median(ratios):.2f}", "high": f"{quantiles(ratios, n=20)[-1]:.2f}"}


def constant() -> dict[str, str]:
    """Rules of snnbench itself, with their units."""
    return {
        "busy": f"{timed_phase.BUSY_NS / 1e6:g} ms",
        "busy_again": f"{timed_phase.BUSY_AGAIN_NS / 1e6:g} ms",
        "scan": f"{scan.SCAN_NS / 1e9:g} s",
        "copied_cpu": f"{probes.COPIED_BYTES['cpu'] >> 20} MiB",
        "copied_cuda": f"{probes.COPIED_BYTES['cuda'] >> 20} MiB",
        "drift": f"{FACTOR:g}",
        "smallest_spread": percent(SMALLEST_SPREAD),
        "largest_spread": percent(LARGEST_SPREAD),
        "growth": f"{memory.GROWTH_NS / 1e9:g} s",
        "least_growth": f"{LEAST_GROWTH_BYTES >> 10} KiB",
        "contended": f"{contention.CONTENDED_CPUS:g} CPUs",
        "rates": " to ".join(map(percent, RATE_WINDOW)),
        "slack": f"{SLACK_NS / 1e6:g} ms",
        "slack_in_a_row": f"{SLACK_IN_A_ROW_NS / 1e6:g} ms",
        "chance": percent(CHANCE),
        "chance_of_each": percent(CHANCE_OF_EACH),
        "series": f"{SERIES_NS / 1e6:g} ms",
        "places": str(PLACES),
    }


SOURCES: tuple[Callable[[], dict[str, str]], ...] = (
    *(
        depth,
        network,
        sew,
        spikformer,
        compiled,
        fusion,
        table_1,
        devices,
        loading,
        training,
        neuron_share,
        nir,
    ),
    *(quick, report, errors, steps, races, first_calls, constant),
)
