"""The Gittins index against its definition."""

from __future__ import annotations

import pytest

from metabandit.bayes.gittins import gittins_table
from tests import naive


@pytest.mark.parametrize("means", [(1.0, 1.0), (3.0, 2.0), (0.5, 1.5)])
def test_gittins_index_is_where_going_on_is_indifferent(means):
    horizon = 12
    table = gittins_table(horizon, *means)
    entry = 0
    for made in range(horizon):
        for n in range(made + 1):
            for s in range(n + 1):
                expected = naive.gittins_index(n, s, horizon - made, *means)
                assert table[entry] == pytest.approx(expected, abs=1e-4)
                entry += 1
    assert entry == len(table)
