"""Names of the models of a pipeline's time and a sentence on them, for every kind of report."""

from snnbench.analysis.pipeline_model import PipelineTimes
from snnbench.units import MS

LOWER_BOUNDS = (
    "The paper's model (arXiv 2408.00280) divides the time of one device, as measured in this recording, by the number "
    "of devices. The other adds the time in which the pipeline fills, with the default number of blocks. Both leave "
    "out the time of messages, which was not measured, so they are lower bounds."
)
"""What both models are; the equations are in analysis/pipeline_model.py."""


MODELS = ("paper's model", "with the fill")
"""The names of the models."""


def times_ms(times: PipelineTimes) -> tuple[float, float]:
    """The times in ms, for times in ns, in the order of MODELS."""
    return times.paper / MS, times.filled / MS
