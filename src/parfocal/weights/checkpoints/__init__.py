"""Checkpoint files of both frameworks, read and written without either of them.

Every file becomes a mapping of names to ``FileTensor``: shapes and dtypes at once, values when
they are asked for. Nothing in a file is ever executed.
"""
