"""The few inner loops that are compiled C, where the package was built with a compiler.

They know arrays by address and nothing of Python. Everything they do NumPy does too, only slower:
``library.LIBRARY`` is None where there is no compiled library.
"""
