"""Random numbers as functions of (seed, episode, arm, pull): the simulator's, in Python's integers."""

from __future__ import annotations

MASK32 = 0xFFFFFFFF
MASK64 = 0xFFFFFFFFFFFFFFFF
WEYL = 0x9E3779B9
FINE = 0xA54FF53A


def mix64(x: int) -> int:
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & MASK64
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & MASK64
    return x ^ (x >> 31)


def episode_word(seed: int, episode: int, slot: int) -> int:
    x = mix64((seed + episode * 0x9E3779B97F4A7C15) & MASK64)
    return mix64((x + slot * 0xD1B54A32D192ED03) & MASK64) >> 32


def draw_bits(word: int, key: int) -> int:
    x = word ^ (word >> 16)
    x = (x * 0x7FEB352D) & MASK32
    x ^= x >> 15
    x ^= key
    x = (x * 0x846CA68B) & MASK32
    return x ^ (x >> 16)


def noise_bits(key: int, step: int, stream: int) -> int:
    word = (key + step * WEYL + stream * 0x85EBCA6B) & MASK32
    return draw_bits(word, key ^ 0x68BC21EB)


def unit(bits: int) -> float:
    return ((bits >> 9) + 0.5) / 2**23


def fine_unit(bits: int, more: int) -> float:
    """Of float64 lanes: 52 bits, of which `more` has the lower ones."""
    return ((bits << 20) + (more >> 12) + 0.5) / 2**52


def below(bits: int, limit: int) -> int:
    return (bits * limit) >> 32
