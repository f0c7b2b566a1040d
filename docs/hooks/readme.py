"""The numbers of README.md."""

from recordings import RESULTS, exact, require, results, time_ns

from snnbench.report.site.catalogue import load


def proved() -> dict[str, str]:
    """How many libraries and cells were proved to be the same work."""
    known = load(RESULTS)
    return {"cells": f"{len(known.by_library)} libraries, {known.proved:,} proved cells"}


def gpu() -> dict[str, str]:
    """Training passes of 512 neurons on a card."""
    known = {key: one for key, one in results("2026-11-26_cards_h200").items() if key[0].as_dict()["neurons"] == 512}
    require(exact(known), "a time is of the same work")
    small = {name: time_ns(result) / 1e6 for (_, name), result in known.items()}
    names = {"fused": "fused/cuda-graph", "spikingjelly": "spikingjelly/auto", "loop": "torch-loop/unbind"}
    return {name: f"{small[contender]:.3g} ms" for name, contender in names.items()}
