"""Tests of the rate of samples in report tables."""

from snnbench.cases import case
from snnbench.workloads import decode
from tests.fakes import CASE
from tests.recordings import timed
from tests.report.test_report import column, table


def test_network_has_its_images_per_second() -> None:
    fields = {name: value for name, value in CASE.as_dict().items() if name in case.Case.names()}
    network = fields | {"workload": "network", "width": 8, "model": "vgg", "image": "mnist", "normalisation": "batch"}
    images = decode(network | {"batch": 4, "input_rate": 0.3})
    rows = table(timed("norse", case=images, train=100.0), timed("sinabs", case=images, inference=1.0))
    assert column(rows, "images/s") == ["40", "-"]
    assert "images/s" not in table(timed("norse", train=2.0))[0]
