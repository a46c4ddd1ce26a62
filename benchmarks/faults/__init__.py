"""Seeded faults in correct ports: which tool sees them, finds their place and names their cause.

``python -m benchmarks.faults`` runs parfocal, and the tools before it in environments of their own,
on the same faults and on the same correct pairs, and writes docs/faults.md.
"""
