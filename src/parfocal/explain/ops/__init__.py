"""Mistakes in a model's own code: its ops, compared by the values they take and give."""
