"""Two models of the time of a temporal pipeline (kernels/ranks.py), to draw beside measurements."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class PipelineTimes:
    """Predicted times of a pass, in the unit of the given times: by the paper's model, and with the pipeline's fill."""

    paper: float
    filled: float


def pipeline_times(single: float, transfer: float, ranks: int, blocks: int) -> PipelineTimes:
    """Times of a pass over all steps on `ranks` devices, with the columns in `blocks`.

    `single` is the time Ts of one device over all steps, `transfer` the time Tc of one message with the state of all
    columns, both in one unit. With k ranks and p blocks:

        paper     (k - 1) Tc + Ts / k                            arXiv 2408.00280, Eq. 4
        filled    (Ts / k) (1 + (k - 1) / p) + (k - 1) Tc

    The paper's model leaves out the fill: rank r cannot start before rank r - 1 has finished its first block. With many
    blocks `filled` approaches `paper`; with one block it is no shorter than `single`. Only the k - 1 messages of a
    block on its way are waited for, and others travel during the work; so with p blocks their time is nearer Tc / p,
    and Tc is its upper bound. Both models assume segments of equal length and a time that is proportional to the
    columns. Raises ValueError for a negative time, and for ranks or blocks below 1.
    """
    if single < 0 or transfer < 0:
        raise ValueError(f"times of {single} and {transfer}: expected 0 or more")
    if ranks < 1 or blocks < 1:
        raise ValueError(f"{ranks} ranks and {blocks} blocks: expected 1 or more of each")
    own, messages = single / ranks, (ranks - 1) * transfer
    return PipelineTimes(messages + own, own * (1 + (ranks - 1) / blocks) + messages)
