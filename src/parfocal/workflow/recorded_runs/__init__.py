"""Two recorded runs, compared in one causal order, with no framework and no model at hand.

``comparing.py`` has the entry and the order of the stages. Each stage is a file: a function from two
recorded steps to what it found. What the stages share is read once and kept in ``pair.py``.
"""
