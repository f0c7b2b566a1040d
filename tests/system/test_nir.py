"""Tests of NIR importers of real libraries: verdicts, causes, and the lines of source that confirm the causes."""

import subprocess
from itertools import pairwise
from pathlib import Path

import h5py
import numpy as np
import pytest

from snnbench.adapter.discovery import discover
from snnbench.environments import store
from snnbench.recording import reading
from tests.managed import ROOT, snnbench
from tests.nir_graphs import AFFINE, ENDS, GRAPHS, LIF, write

pytestmark = pytest.mark.libraries

FIXED, LATE = "dt fixed at 0.0001 s inside", "threshold subtracted after the decay, output one step late"
STEPS = "tau taken as steps, decay exp(-dt / tau)"
EXPECTED = {
    ("norse", "import"): ("exact", None),
    ("snntorch", "import"): ("deviates", FIXED),
    ("sinabs", "import"): ("deviates", f"{STEPS}, several spikes a step"),
    ("spikingjelly", "import"): ("exact", None),
    ("spyx", "import"): ("deviates", f"current not scaled by R dt / tau, {LATE}"),
    ("rockpool", "import"): ("crash", None),
    ("norse", "export"): ("deviates", "tau multiplied by dt"),
    ("snntorch", "export"): ("deviates", FIXED),
    ("sinabs", "export"): ("deviates", f"{STEPS}, current not scaled by R dt / tau"),
    ("spikingjelly", "export"): ("exact", None),
    ("spyx", "export"): ("deviates", f"current not scaled by R dt / tau, {LATE}"),
    ("rockpool", "export"): (
        "deviates",
        "decay exp(-dt / tau), current not scaled by R dt / tau, threshold subtracted",
    ),
}
"""(library, measure) -> verdict and cause on graphs/lif.nir at 0.001 s."""


def test_libraries_read_and_write_one_lif_graph_as_the_documents_say(tmp_path: Path) -> None:
    done = snnbench("run", "-c", "exchange", "--nir", "lif", "--dt", "0.001", "-o", "recorded", "--quiet", cwd=tmp_path)
    assert done.returncode == 0, done.stderr[-2000:]
    exchanges = reading.read(tmp_path / "recorded").exchanges
    verdicts = {
        (one.library, one.measure): (one.outcome.verdict or one.outcome.kind, one.outcome.deviation)
        for one in exchanges
    }
    assert verdicts == EXPECTED


def test_what_spyx_makes_of_an_input_of_another_name_is_shown(tmp_path: Path) -> None:
    """A KeyError came from the adapter, which asked for the node `input`; Spyx itself expects that name, too."""
    names = ("in", "0", "1", "out")
    nodes = dict(zip(names, (ENDS["input"], AFFINE, LIF, ENDS["output"]), strict=True))
    graph = write(tmp_path / "names.nir", nodes, [*pairwise(names)])
    command = ("run", "--nir", str(graph), "--dt", "0.001", "--only", "library=spyx", "-o", "recorded", "--quiet")
    snnbench(*command, cwd=tmp_path)
    record = next(one for one in reading.read(tmp_path / "recorded").exchanges if one.measure == "import")
    assert record.outcome.reason == "no known interpretation of the graph has this output"


@pytest.mark.parametrize(
    ("library", "file", "line", "text"),
    [
        ("snntorch", "snntorch/import_nir.py", 243, "dt = 1e-4"),
        ("snntorch", "snntorch/import_nir.py", 235, "beta=0.9,"),
        ("snntorch", "snntorch/import_nir.py", 250, "beta = 1 - (dt / node.tau)"),
        ("snntorch", "snntorch/import_nir.py", 279, "dt = 1e-4"),
        ("sinabs", "sinabs/nir.py", 97, "if any(node.v_leak) != 0:"),
        ("sinabs", "sinabs/nir.py", 101, "tau_mem=node.tau,"),
        ("norse", "norse/torch/utils/import_nir.py", 122, '_log_warning("r", 1, _to_tensor(node.r).mean())'),
        ("rockpool", "rockpool/nn/modules/torch/nir.py", 111, "tau=_to_tensor(node.tau).int(),"),
        ("rockpool", "rockpool/nn/modules/torch/nir.py", 118, "tau_mem=_to_tensor(node.tau_mem),"),
        ("spyx", "spyx/nir.py", 329, "mod.beta[...] = jnp.array(_nir_to_spyx_param(1 - (dt / node.tau)))"),
        ("spikingjelly", "spikingjelly/activation_based/nir_exchange/from_nir.py", 176, "if _is_close_finite(r, 1.0):"),
        (
            "norse",
            "norse/torch/utils/export_nir.py",
            37,
            "tau=dt / module.p.tau_mem_inv.detach(),  # Invert time constant",
        ),
        (
            "norse",
            "norse/torch/utils/export_nir.py",
            30,
            "tau_syn=dt / module.p.tau_syn_inv.detach(),  # Invert time constant",
        ),
        ("sinabs", "sinabs/nir.py", 167, "tau=module.tau_mem.detach(),"),
        ("snntorch", "snntorch/export_nir.py", 68, "dt = 1e-4"),
        ("snntorch", "snntorch/export_nir.py", 95, "dt = 1e-4"),
        (
            "rockpool",
            "rockpool/nn/modules/torch/nir.py",
            288,
            "module.tau_mem * torch.exp(-module.dt / module.tau_mem) / module.dt",
        ),
        ("spyx", "spyx/nir.py", 593, "r=beta,"),
    ],
)
def test_source_has_the_line_that_the_page_names(library: str, file: str, line: int, text: str) -> None:
    packages = next(prepared(library).parents[1].glob("lib/python*/site-packages"))
    assert (packages / file).read_text(encoding="utf-8").splitlines()[line - 1].strip() == text
    page = (ROOT / "docs" / "explanations" / "nir.md").read_text(encoding="utf-8")
    assert file in page


def test_graphs_are_as_their_maker_makes_them(tmp_path: Path) -> None:
    subprocess.run([prepared("norse"), GRAPHS / "make.py", tmp_path], check=True)
    made = sorted(path.name for path in tmp_path.glob("*.nir"))
    assert made == sorted(path.name for path in GRAPHS.glob("*.nir"))
    for name in made:
        with h5py.File(tmp_path / name) as new, h5py.File(GRAPHS / name) as old:
            assert contents(new) == contents(old)


def prepared(library: str) -> Path:
    """The Python of a library with the packages of its importer."""
    adapter = discover()[library]
    environment = store.plan(adapter, adapter.default, False, "nir")
    return store.sync(environment, lambda line: None).python


def contents(file: h5py.File) -> dict[str, object]:
    """Every value in a file, by its path."""
    values: dict[str, object] = {}

    def add(name: str, item: object) -> None:
        if isinstance(item, h5py.Dataset):
            values[name] = np.asarray(item[()]).tolist()

    file.visititems(add)
    return values
