"""Slurm: a config as an array of jobs, whose recordings become one."""
