"""Interfaces to other libraries: one file per library, which needs it only if it is imported."""
