"""Reports: what recordings say, as Markdown tables, as one offline page, and as figures for papers."""

from snnbench.report.text.recording_tables import coverage, markdown

__all__ = ["coverage", "markdown"]
