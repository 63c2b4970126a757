"""What the tests of learning have in common."""

import pytest

from metabandit.learning import measure


@pytest.fixture(autouse=True)
def _short_reports(monkeypatch):
    """The measurement at the end is tested elsewhere; here it need not be precise."""
    monkeypatch.setattr(measure, "_MOST_EPISODES", 20_000)
