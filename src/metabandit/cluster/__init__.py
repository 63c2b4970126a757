"""A Dask cluster as an executor."""

from .executor import Cluster

__all__ = ["Cluster"]
