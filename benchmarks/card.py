"""What a card answers to assumptions of the harness: its clock after idling, its products, the rounding of TF32.

    python -m benchmarks card
    python -m benchmarks card --minutes 14 [--into FOLDER] [OPTIONS of snnbench run]
    python -m benchmarks card --simulated --minutes 14 [--into FOLDER]

With --minutes it measures the documents' charts instead, for so long (benchmarks/charts.py). With --simulated no card
takes part: it shows whether the charts fit into so long (benchmarks/simulated_card.py).

After idling: the time of a pass after the card idled and then ran passes again for some milliseconds, divided by its
time among passes in a row. The harness lets passes run before it times any, because a card may lower its clock.
Products: torch's `linear`, which libraries call, and its products without `out`, divided by the products that the
floor is made of. A ratio far below 1 would make honest cells faster than their floor.
TF32: the largest distance of a product from the exact sums of operands that were rounded in one of three ways, in
roundoffs of float32 in the sum of magnitudes.
"""

import argparse
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn import functional

from benchmarks import charts, simulated_card
from benchmarks.outcome import show
from snnbench.worker.clocks import mhz

RESULTS = Path("results/charts")
IDLE_MS = (5, 50, 500)
BUSY_MS = (0, 1, 5, 20, 200)
REPETITIONS = 3
SIZES = (512, 4096, 16384)
ROWS = 8000
PRECISIONS = ((torch.float32, "ieee"), (torch.float32, "tf32"), (torch.bfloat16, "ieee"))
NAMES = ("linear", "weight gradient", "input gradient")
ROUNDINGS = ("nearest, ties to even", "nearest, ties away", "cut off")
ROUNDOFF = 2.0**-24

Run = Callable[[], Any]


def main() -> int:
    """Ask the card, and show its answers."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks card", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--minutes", type=float, help="measure the documents' charts for so long")
    parser.add_argument("--into", type=Path, help=f"folder of their recordings (default: {RESULTS})")
    parser.add_argument("--simulated", action="store_true", help="measure them on a simulated card")
    given, more = parser.parse_known_args()
    wrong = [*(["--simulated"] if given.simulated else []), *more]
    if given.minutes is None and wrong:
        parser.error(f"{wrong[0]} goes with --minutes only")
    if given.simulated and more:
        parser.error(f"{more[0]} does not go with --simulated")
    if given.simulated:
        return simulated_card.main(given.minutes, given.into)
    if given.minutes is not None:
        return charts.measure(given.minutes, given.into or RESULTS, more)
    show_idling()
    show_products()
    show_rounding()
    return 0


def timed_ns(run: Run) -> int:
    """The time of one pass by the host's clock."""
    torch.cuda.synchronize()
    started = time.perf_counter_ns()
    run()
    torch.cuda.synchronize()
    return time.perf_counter_ns() - started


def keep_busy(run: Run, busy_ms: float) -> None:
    """Run passes for some time."""
    ends = time.perf_counter() + busy_ms / 1000
    while time.perf_counter() < ends:
        timed_ns(run)


def show_idling() -> None:
    """The table of passes after idling."""
    small, large = (torch.randn(1600, neurons, device="cuda") for neurons in (512, 4096))
    weights = {run.shape[1]: torch.randn(run.shape[1], run.shape[1], device="cuda") for run in (small, large)}

    def eight() -> None:
        for _ in range(8):
            torch.mm(small, weights[512])

    rows = []
    for name, run in (("8 products, N = 512", eight), ("1 product, N = 4096", lambda: torch.mm(large, weights[4096]))):
        keep_busy(run, 1000)
        usual_ns = median(timed_ns(run) for _ in range(50))
        for idle_ms in IDLE_MS:
            ratios = []
            for busy_ms in BUSY_MS:
                durations = []
                for _ in range(REPETITIONS):
                    time.sleep(idle_ms / 1000)
                    clock = mhz().get("sm", 0)
                    keep_busy(run, busy_ms)
                    durations.append(timed_ns(run))
                ratios.append(median(durations) / usual_ns)
            rows.append(
                [f"{name}, {usual_ns / 1000:.0f} us", str(idle_ms), *(f"{each:.2f}" for each in ratios), str(clock)]
            )
    columns = ["pass", "idle ms", *(f"after {busy_ms} ms" for busy_ms in BUSY_MS), "SM MHz after idling"]
    show("A pass after idling, over the same pass in a row", columns, rows)


def fastest_ms(run: Run) -> float:
    """The fastest of a few passes by the card's clock."""
    run()
    durations: list[float] = []
    for _ in range(7):
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        run()
        end.record()
        torch.cuda.synchronize()
        durations.append(start.elapsed_time(end))
    return min(durations)


def show_products() -> None:
    """The table of products."""
    rows = []
    for dtype, precision in PRECISIONS:
        torch.backends.cuda.matmul.fp32_precision = precision
        for neurons in SIZES:
            x = (torch.rand(ROWS, neurons, device="cuda") < 0.1).to(dtype)
            g, out = (torch.randn(ROWS, neurons, device="cuda").to(dtype) for _ in range(2))
            w, square = (torch.randn(neurons, neurons, device="cuda").to(dtype) for _ in range(2))
            bias = torch.randn(neurons, device="cuda").to(dtype)
            floors = (
                fastest_ms(partial(torch.mm, x, w.T, out=out)),
                fastest_ms(partial(torch.mm, g.T, x, out=square)),
                fastest_ms(partial(torch.mm, g, w, out=out)),
            )
            others = (
                fastest_ms(partial(functional.linear, x, w, bias)),
                fastest_ms(partial(torch.matmul, g.T, x)),
                fastest_ms(partial(torch.matmul, g, w)),
            )
            ratios = (f"{other / floor:.3f}" for other, floor in zip(others, floors, strict=True))
            milliseconds = (f"{floor:.3f}" for floor in floors)
            rows.append([f"{str(dtype)[6:]} {precision}, N = {neurons}", *ratios, *milliseconds])
    torch.backends.cuda.matmul.fp32_precision = "ieee"
    columns = ["products", *NAMES, *(f"{name} ms" for name in NAMES)]
    show(f"Products of {ROWS} rows, over those of the floor", columns, rows)


def show_rounding() -> None:
    """The table of TF32."""
    torch.backends.cuda.matmul.fp32_precision = "tf32"
    rows = []
    for neurons in (256, 4096, 16384):
        random = np.random.default_rng(0)
        x = (random.random((512, neurons)) < 0.1).astype(np.float32)
        w = random.standard_normal((256, neurons), np.float32)
        product = functional.linear(torch.from_numpy(x).cuda(), torch.from_numpy(w).cuda()).cpu().numpy()
        exact = x.astype(np.float64)
        unit = ROUNDOFF * (1 + exact @ np.abs(w).astype(np.float64).T)
        distances = (np.abs(product - exact @ rounded(w, rounding).T) / unit for rounding in ROUNDINGS)
        rows.append([f"N = {neurons}", *(f"{distance.max():.3g}" for distance in distances), f"{neurons // 4}"])
    torch.backends.cuda.matmul.fp32_precision = "ieee"
    show("TF32: roundoffs from the sums of rounded operands", ["products", *ROUNDINGS, "allowed (N / 4)"], rows)


def rounded(operand: NDArray[np.float32], rounding: str) -> NDArray[np.float64]:
    """The operand in TF32, which has 10 bits of a mantissa."""
    bits: NDArray[np.uint32] = operand.view(np.uint32)
    added = {
        ROUNDINGS[0]: np.uint32(0xFFF) + ((bits >> np.uint32(13)) & np.uint32(1)),
        ROUNDINGS[1]: np.full_like(bits, 0x1000),
        ROUNDINGS[2]: np.zeros_like(bits),
    }[rounding]
    result: NDArray[np.uint32] = (bits + added) >> np.uint32(13) << np.uint32(13)
    return result.view(np.float32).astype(np.float64)
