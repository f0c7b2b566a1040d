"""Slurm: a config as an array of jobs, and one recording merged from theirs."""
