"""Runs: plans from Python, threads, progress, benchmarks."""
