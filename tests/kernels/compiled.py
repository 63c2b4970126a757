"""Functions of lanes as Python can call them."""

import numba


def callable_lane(function):
    """A function that has no code for Python, because only kernels call it, inside one that has."""

    @numba.njit
    def call(*given):
        return function(*given)

    return call
