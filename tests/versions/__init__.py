"""The tests in environments with other versions of the frameworks: ``python -m tests.versions``."""
