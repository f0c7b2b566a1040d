"""Tests of reports of networks: the rate of images, and the names of settings."""

import pytest

from snnbench.cases import case
from snnbench.report import wording
from snnbench.workloads import decode
from tests.fakes import CASE
from tests.recordings import timed
from tests.report.test_report import column, table

FIELDS = {name: value for name, value in CASE.as_dict().items() if name in case.Case.names()} | {"batch": 4}
NETWORK = {"workload": "network", "width": 8, "model": "vgg", "image": "mnist", "normalisation": "batch"}
IMAGES = decode(FIELDS | NETWORK | {"input_rate": 0.3})


def test_network_has_its_images_per_second() -> None:
    rows = table(timed("norse", case=IMAGES, train=100.0), timed("sinabs", case=IMAGES, inference=1.0))
    assert column(rows, "images/s") == ["40", "-"]
    assert "images/s" not in table(timed("norse", train=2.0))[0]


@pytest.mark.parametrize("axis", [{"model": "spiking-resnet18"}, {"image": "cifar10"}, {"normalisation": "frozen"}])
def test_name_of_a_network_says_each_of_its_axes_once(axis: dict[str, str]) -> None:
    settings = [wording.setting(IMAGES), wording.setting(IMAGES.with_(**axis))]
    names = [wording.setting_name(setting, settings) for setting in settings]
    assert names[0] == "vgg on mnist, reset by subtraction, CPU" and names[1] != names[0]
    ((name, value),) = axis.items()
    assert names[1].count(value) == 1 and name not in names[1]
