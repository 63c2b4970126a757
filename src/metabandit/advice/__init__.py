"""What is worth using for a prior: a classic, a readable formula or a learned policy."""

from .advisor import advise
from .result import Advice

__all__ = ["Advice", "advise"]
