"""A model of either framework under PaDiff's one interface."""

from parfocal.compat.padiff.abstracts.proxy_model import ProxyModel

__all__ = ["ProxyModel"]
