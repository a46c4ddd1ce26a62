"""Imports paddle once, where the warning it gives without a C++ compiler's cache is expected."""

import warnings

with warnings.catch_warnings():
    warnings.filterwarnings("ignore", message="No ccache found", category=UserWarning)
    import paddle  # noqa: F401
