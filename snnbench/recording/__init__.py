"""The recording: the outcome of each cell, as files that outlive the run."""
