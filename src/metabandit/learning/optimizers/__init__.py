"""Optimisers: a new one is one file in this folder."""

from importlib import import_module
from pkgutil import iter_modules

from .base import OPTIMIZERS, Optimizer, make_optimizer, register_optimizer

for _module in iter_modules(__path__):
    import_module(f".{_module.name}", __name__)

__all__ = ["OPTIMIZERS", "Optimizer", "make_optimizer", "register_optimizer"]
