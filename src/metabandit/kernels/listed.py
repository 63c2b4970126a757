"""Backward induction for two arms whose problem is one of a list (bayes/listed.py has the mathematics)."""

from __future__ import annotations

import numpy as np

from .counts import pair
from .jit import jit


@jit
def step(m, value, ratio, offset, stride, chance):
    """What play is worth after m plays, in place of that after m + 1; layout as in forward.py.

    value: that worth times `ratio`; ratio: how much more likely a state is with the list than with
    uniform means, of which it is a mean over what either arm may bring
    """
    for n1 in range(m + 1):
        n2 = m - n1
        seconds = chance[1, pair(n2, 0) : pair(n2 + 1, 0)]
        width = stride[n1 + 1]
        for s1 in range(n1 + 1):
            begin = offset[n1] + s1 * stride[n1]
            lost = offset[n1 + 1] + s1 * width
            won = lost + width
            p = chance[0, pair(n1, s1)]
            for s2 in range(n2 + 1):
                here, q = begin + s2, seconds[s2]
                one = p * (ratio[won + s2] + value[won + s2]) + (1.0 - p) * value[lost + s2]
                two = q * (ratio[here + 1] + value[here + 1]) + (1.0 - q) * value[here]
                value[here] = max(one, two)
                ratio[here] = q * ratio[here + 1] + (1.0 - q) * ratio[here]


@jit
def run(first, last, value, ratio, offset, stride, chance):
    """All steps from `last` plays back to `first`."""
    for m in range(last - 1, first - 1, -1):
        step(np.int64(m), value, ratio, offset, stride, chance)
