"""Live play with the standard library only, so that a service starts at once."""

from .arm import Arm, ArmName
from .player import ArmView, Player, check_arm, read_arms
from .setting import Rewards, Setting

__all__ = ["Arm", "ArmName", "ArmView", "Player", "Rewards", "Setting", "check_arm", "read_arms"]
