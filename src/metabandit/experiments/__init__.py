"""The paper's experiments as data, and how they are done anew into records."""

from .plan import PARTS, SCALES
from .records import Records
from .reproduce import reproduce

__all__ = ["PARTS", "SCALES", "Records", "reproduce"]
