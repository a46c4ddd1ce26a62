"""Which name of torch is which name of paddle: layers, functions, optimizers, schedules, initialisers.

Everything here can be read without a framework; ``signatures`` asks an installed one for its defaults.
"""
