"""Why two calls differ: hypotheses, each tested by computing again with one thing changed.

``case`` is one divergence under investigation and how to try a change, ``explainer`` the table of
hypotheses in their order, ``causes`` what a proven one says. ``layers`` are mistakes of layers,
``ops`` of a model's own code, ``backward`` of gradients alone; ``fixes`` is the line to write.
"""
