"""The paper's experiments as data, and how they are done anew into records."""

from .plan import PARTS
from .records import Records
from .reproduce import reproduce
from .scales import SCALES

__all__ = ["PARTS", "SCALES", "Records", "reproduce"]
