"""Mistakes of layers: their settings, their kind, their weights and statistics, what they are given."""
