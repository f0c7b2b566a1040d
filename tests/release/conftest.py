"""The browser of tests/system."""

from tests.system.conftest import browser

__all__ = ["browser"]
