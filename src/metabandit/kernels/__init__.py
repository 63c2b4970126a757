"""Compiled code only: numba and numpy, nothing of the rest of metabandit."""
