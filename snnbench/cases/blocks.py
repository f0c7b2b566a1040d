"""The default number of blocks in a temporal pipeline, for the kernels that run it and for the models of its time."""

BLOCKS_PER_LINK = 4
"""Default blocks for each pair of neighbours; `default_blocks` has the reason."""


def default_blocks(ranks: int, columns: int) -> int:
    """The blocks of `temporal_lif` by default: 4 (ranks - 1), at most one for each column.

    The last rank waits for ranks - 1 blocks before its first, so the fill of the pipeline lengthens a rank's own work
    by (ranks - 1) / blocks: by a quarter.
    """
    return max(1, min(BLOCKS_PER_LINK * (ranks - 1), columns))
