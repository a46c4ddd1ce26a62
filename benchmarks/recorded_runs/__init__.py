"""Pairs of recorded runs, correct ones and ones with a single mistake, and what ``pf.compare`` says of them.

``python -m benchmarks.recorded_runs`` records them, compares the files and writes ``docs/recorded-runs.md``.
"""
