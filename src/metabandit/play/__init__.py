"""Policies at work: what plays them outside of the simulator."""
