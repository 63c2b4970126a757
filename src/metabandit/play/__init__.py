"""Live play with the standard library only, so that a service starts at once."""

from .arm import Arm, ArmName
from .choices import Choice
from .player import ArmView, Player, check_arm, read_arms
from .players import load_player

__all__ = ["Arm", "ArmName", "ArmView", "Choice", "Player", "check_arm", "load_player", "read_arms"]
