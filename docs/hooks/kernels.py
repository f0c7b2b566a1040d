"""The numbers of pages on snnbench's own kernels, from recorded benchmarks."""

from recordings import benchmark, require


def limit() -> dict[str, str]:
    """The parts of a small pass of `fused/cpu`, and its ratio to its products."""
    (table,) = benchmark("limit")
    rows = {row[0]: dict(zip(table["columns"], row, strict=True)) for row in table["rows"]}
    small = {"outside": rows["16"]["outside us"], "whole": rows["16"]["pass us"], "empty": rows["16"]["empty us"]}
    return small | {f"ratio_{neurons}": rows[neurons]["x floor"] for neurons in ("16", "512", "2048")}


def least_memory() -> dict[str, str]:
    """The contender that comes nearest to the host memory of `fused/cpu-lowmem`."""
    tables = [table for name in ("memory", "memory-2048", "memory-long") for table in benchmark(name)]
    case, *_, other, _, ratio = min((row for table in tables for row in table["rows"]), key=lambda row: float(row[-1]))
    require(float(ratio) > 1, "the least host memory of all exact contenders")
    profile, neurons, steps = case.replace("=", " = ").split(", ")
    return {"other": f"`{other}`", "ratio": ratio, "case": f"{neurons} and {steps} in the profile `{profile}`"}


def busy() -> dict[str, str]:
    """Passes beside a busy process: of `fused/cpu`, and of the contenders that come nearest to it."""
    alone, beside = ({row[0]: row[1] for row in table["rows"]} for table in benchmark("contenders"))
    five = [benchmark(name)[1]["rows"] for name in ("contenders", "contenders-2048", "contenders-long")]
    behind = {row[0]: row[2:] for rows in five for row in rows if float(row[-1]) < 0.95}
    near = {row[0]: row[-1] for row in benchmark("contenders-near")[1]["rows"]}
    require(behind.keys() <= near.keys() and min(map(float, near.values())) >= 0.95, "five rounds are too few")
    case, subtract, zero = "subtract, N=512, T=25", "subtract, N=2048, T=100", "zero, N=2048, T=100"
    passes = {"alone": f"{alone[case]} ms", "beside": f"{beside[case]} ms"}
    other, ratio = behind[subtract]
    return {**passes, "subtract": near[subtract], "zero": near[zero], "other": f"`{other}`", "five_rounds": ratio}


def zen_4() -> dict[str, str]:
    """The nearest contenders on another processor, in five rounds and in 15."""
    five, fifteen = (
        [{row[0]: row for row in table["rows"]} for table in benchmark(f"contenders{name}-zen4")]
        for name in ("", "-near")
    )
    require([list(rows) for rows in fifteen] == [list(rows) for rows in five], "every case in more rounds")
    rows = [row for table in five for row in table.values()]
    nearest = {"jax-scan", "spyx-haiku/time-major", "brainpy/outside", "jaxpike/unroll-1"}
    require({row[-2] for row in rows if float(row[-1]) < 1} <= nearest, "the four nearest contenders")
    alone, beside = (min((row[-1] for row in table.values()), key=float) for table in fifteen)
    behind = sum(float(row[-1]) < 0.95 for row in rows)
    return {"behind": f"{behind} of {len(rows)} rows", "alone": alone, "beside": beside}


def streaming() -> dict[str, str]:
    """Four pieces of a long input over the whole, with and without gradients: of the layer, and of its linear part."""
    spikes, training = ({row[0]: (row[3], row[5]) for row in table["rows"]} for table in benchmark("streaming"))
    small = {"small": training["16"][0], "linear": training["16"][1], "spikes": " and ".join(spikes["16"])}
    return {**small, "large": training["512"][0]}


SOURCES = (limit, least_memory, busy, zen_4, streaming)
