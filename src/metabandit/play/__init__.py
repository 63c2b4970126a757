"""Live play with the standard library only, so that a service starts at once."""

from .arm import Arm, ArmName, ArmView, check_arm, read_arms
from .choices import Choice
from .player import Player
from .players import load_player

__all__ = ["Arm", "ArmName", "ArmView", "Choice", "Player", "check_arm", "load_player", "read_arms"]
