"""The files of NIR graphs that a config or a command line names."""

from functools import cache
from pathlib import Path

from snnbench.adapter.discovery import data_folder
from snnbench.conformance import conversion, graph
from snnbench.files import home
from snnbench.workloads import graphs


def text(value: str) -> str:
    """The text of a graph in a case, for such a text, the path of a file, or the name of a file of snnbench's graphs.

    The graph of a file is converted. Raises ValueError for other texts, and GraphError for a graph that cannot be run.
    """
    if graphs.HEAD.match(value):
        graphs.parse(value)
        return value
    if not value:
        raise ValueError("name a file of nir.write(), or a graph that comes with snnbench")
    shipped = {path.stem: path for path in data_folder("graphs").glob("*.nir")}
    return _kept(shipped.get(value, Path(value)), home())


@cache
def _kept(path: Path, home_folder: Path) -> str:
    """The text of the graph in a file, whose numbers are then in the home folder."""
    return conversion.keep(path, graph.read(path)).text()
