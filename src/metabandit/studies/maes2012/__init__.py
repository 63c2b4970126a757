"""The paper's experiments as data, and how they are done anew into records."""

from .plan import PARTS
from .records import Records
from .reproduce import default_folder, reproduce
from .scales import SCALES

__all__ = ["PARTS", "SCALES", "Records", "default_folder", "reproduce"]
