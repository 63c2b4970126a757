"""The random numbers of a player: functions of the seed and of where they are used, not of when.

They are those of the simulator (kernels/random.py) for episode 0, so that a player meets ties and
makes random plays as a simulated episode does, and its state is a count of selections.
"""

from __future__ import annotations

_MASK32 = 0xFFFFFFFF
_MASK64 = 0xFFFFFFFFFFFFFFFF
# Streams, as in kernels/random.py.
TIES = 1
CHOICES = 2
ARMS = 16


def _mix(x: int) -> int:
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & _MASK64
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & _MASK64
    return x ^ (x >> 31)


def key_of(seed: int) -> int:
    """The key of episode 0 of a seed."""
    return _mix(_mix(seed & _MASK64)) >> 32


def bits(key: int, step: int, stream: int) -> int:
    """32 random bits of a selection."""
    x = (key + step * 0x9E3779B9 + stream * 0x85EBCA6B) & _MASK32
    x ^= x >> 16
    x = (x * 0x7FEB352D) & _MASK32
    x ^= x >> 15
    x ^= key ^ 0x68BC21EB
    x = (x * 0x846CA68B) & _MASK32
    return x ^ (x >> 16)


def below(key: int, step: int, stream: int, limit: int) -> int:
    """A whole number from 0 to limit - 1."""
    return (bits(key, step, stream) * limit) >> 32


def unit(key: int, step: int, stream: int) -> float:
    """A uniform number strictly between 0 and 1."""
    return ((bits(key, step, stream) >> 9) + 0.5) * 2.0**-23
