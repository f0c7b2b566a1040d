"""The proof: is the answer of a pass that of the reference? In the exam, the spot check and timed passes."""
