"""The experiments of a store over HTTP: choices, rewards and what they amount to, for any number of clients."""

from .app import make_app

__all__ = ["make_app"]
