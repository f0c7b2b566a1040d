"""A browser without a screen and without a network, for the tests that open pages."""

import os
import shutil
from collections.abc import Iterator
from typing import Any

import pytest

CHROMIUM, CHROMEDRIVER = shutil.which("chromium"), shutil.which("chromedriver")
REQUIRED = "browser" in os.environ.get("SNNBENCH_TEST_REQUIRES", "").replace(",", " ").split()


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """Chromium without a screen and without a network; its logs hold its messages and requests."""
    if not (CHROMIUM and CHROMEDRIVER):
        missing = "no chromium and chromedriver here (on Debian: apt-get install chromium-driver)"
        if REQUIRED:
            pytest.fail(missing)
        pytest.skip(missing)
    from selenium import webdriver
    from selenium.webdriver.chrome.options import Options
    from selenium.webdriver.chrome.service import Service

    options = Options()
    options.binary_location = CHROMIUM
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--disable-dev-shm-usage"):
        options.add_argument(argument)
    options.add_argument("--host-resolver-rules=MAP * ~NOTFOUND")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(CHROMEDRIVER))
    yield driver
    driver.quit()
