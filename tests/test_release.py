"""Tests that the version, the changelog and the citation say the same."""

import re
from pathlib import Path

import yaml

import snnbench

ROOT = Path(__file__).parents[1]


def test_changelog_begins_with_the_version_of_the_package() -> None:
    headings = re.findall(r"^## (\S+) - (\d{4}-\d\d-\d\d)$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    versions = [version for version, _ in headings]
    assert versions[0] == snnbench.__version__ and len(versions) > 1
    assert versions == sorted(versions, key=lambda version: [int(part) for part in version.split(".")], reverse=True)


def test_citation_is_of_the_newest_version() -> None:
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    ((version, day),) = re.findall(r"^## (\S+) - (\S+)$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)[:1]
    assert (citation["version"], citation["date-released"], citation["license"]) == (version, day, "MIT")
    assert citation["cff-version"] == "1.2.0" and citation["authors"] and citation["title"]
