"""The recording: what became of each cell, as files that outlive the run."""
