"""Mistakes of the backward pass alone: gradients that are stopped, changed, or sent elsewhere."""
