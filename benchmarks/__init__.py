"""The benchmarks of snnbench itself; `python -m benchmarks` lists them."""
