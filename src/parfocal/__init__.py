"""parfocal: swap the framework, keep the numbers."""
__version__ = "0.1.0"
