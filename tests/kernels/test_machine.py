"""The machine against a slow evaluator of trees, and its special functions against scipy."""

import itertools
import math

import numpy as np
import pytest
import scipy.optimize
import scipy.special
import scipy.stats
from hypothesis import example, given, settings
from hypothesis import strategies as st

from metabandit.errors import InputError
from metabandit.kernels import machine, opcodes, special
from metabandit.language import Constant, Name, parse, text
from metabandit.language.compile import compile_expression
from metabandit.language.values import evaluate_tree
from tests import naive
from tests.kernels.compiled import callable_lane
from tests.language.test_text import DIGITS, listed, trees
from tests.tiers import some

f32 = np.float32


def divergence(p, q):
    return scipy.special.rel_entr(p, q) + scipy.special.rel_entr(1 - p, 1 - q)


def slow_kl_upper(mean, bound):
    known = (mean >= -1e-12) & (mean <= 1 + 1e-12) & (bound == bound)
    p = np.clip(mean, 0, 1)
    low, high = p, np.ones_like(p)
    for _ in range(60):
        middle = (low + high) / 2
        under = divergence(p, middle) <= bound
        low, high = np.where(under, middle, low), np.where(under, high, middle)
    return np.where(known, np.where(bound > 0, low, mean), np.nan)


def slow_beta_quantile(p, a, b):
    inside = (p >= 0) & (p <= 1) & (a > 0) & (b > 0)
    return np.where(inside, scipy.special.betaincinv(a, b, p), np.nan)


IN_NUMPY = {
    "min": "minimum",
    "max": "maximum",
    "ln": "log",
    "negate": "negative",
    "invert": "reciprocal",
}


class Slow:
    """Evaluates trees one node after another, in samples that differ by a little noise.

    Rows of every array are samples, columns are lanes. The first sample has no noise; in the others
    every result is off by up to `size`, relatively, so that their spread says how far rounding can
    move the value. `unsure` marks lanes where numbers leave the range [1 / most, most], or where
    the documented meaning leaves open what the value is.
    """

    def __init__(self, size, most, lanes, seed, samples=24):
        self.rng = np.random.default_rng(seed)
        self.shape = (samples, lanes)
        self.size = size
        self.most = most
        self.unsure = np.zeros(lanes, bool)

    def noise(self):
        noise = self.size * self.rng.uniform(-1, 1, self.shape)
        noise[0] = 0.0
        return noise

    def rounded(self, value):
        value = value * (1 + self.noise())
        size = np.abs(value)
        beyond = (size > self.most) & (size < np.inf) | (size > 0) & (size < 1 / self.most)
        self.unsure |= beyond.any(axis=0)
        return value

    def polynomial(self, values, weights):
        degree = round(len(weights) ** 0.25) - 1
        total = np.zeros(self.shape)
        exponents = itertools.product(range(degree + 1), repeat=4)
        for weight, powers in zip(weights, exponents, strict=True):
            factors = [
                value for value, power in zip(values, powers, strict=True) for _ in range(power)
            ]
            total += self.rounded(math.prod(factors, start=weight))
        return self.rounded(total)

    def value(self, tree, variables):
        if isinstance(tree, Constant):
            return self.rounded(np.full(self.shape, tree.value))
        if isinstance(tree, Name):
            return np.broadcast_to(variables[tree.name], self.shape)
        x, *more = (self.value(operand, variables) for operand in tree.operands)
        if tree.operator == "power" and tree.operands[1] == Constant(2.0):
            return self.rounded(x * x)
        if tree.operator == "power":
            undefined = (x == 0) & (more[0] == 0) | np.isinf(x) | np.isinf(more[0])
            # An exponent that is computed may come out as 2, and then any number has a square.
            square = np.abs(more[0] - 2.0) < 1e-5
            self.unsure |= (undefined | square & (x < 0)).any(axis=0)
            return self.rounded(np.exp(self.rounded(more[0] * self.rounded(np.log(x)))))
        if tree.operator == "polynomial":
            return self.polynomial([x, *more[:3]], more[3:])
        if tree.operator == "kl_upper":
            # The divergence is a sum of terms of size 1, so its rounding is absolute.
            return self.rounded(slow_kl_upper(x, more[0] + 4 * self.noise()))
        if tree.operator in ("normal_quantile", "beta_optimist", "normal_optimist"):
            numbers = np.broadcast_arrays(x, *more)
            if more:
                extreme = (np.minimum(*more) < 0.05) | (np.maximum(*more) > 1e4)
                self.unsure |= (extreme | (x > 0) & (x < 1e-30)).any(axis=0)
            flat = zip(*(item.ravel() for item in numbers), strict=True)
            found = [naive.language.apply(tree.operator, list(map(float, item))) for item in flat]
            return self.rounded(np.reshape(found, numbers[0].shape))
        if tree.operator == "beta_quantile":
            extreme = (np.minimum(*more) < 0.05) | (np.maximum(*more) > 1e4)
            self.unsure |= (extreme | (x > 0) & (x < 1e-30)).any(axis=0)
            return self.rounded(slow_beta_quantile(x, *more))
        if tree.operator == "difference":
            value, size = x - more[0], np.abs(x) + np.abs(more[0])
            # Where it is almost lost, rounding decides.
            lost = 1e-13 if self.size < 1e-10 else 2e-6
            self.unsure |= (np.abs(value) < 100 * lost * size).any(axis=0)
            return self.rounded(value)
        return self.rounded(getattr(np, IN_NUMPY.get(tree.operator, tree.operator))(x, *more))


def run_machine(tree, lanes, moment, dtype):
    """The index of one arm in every lane, as the simulator asks the machine for it."""
    program = compile_expression(tree)
    count = len(lanes["n"])
    stride = count + 3
    arm, out, registers = 4, 8, 9  # rows; the first four belong to another arm
    rows = np.full((registers + program.registers, stride), np.nan, dtype)
    for row, name in enumerate(("n", "r", "s", "w")):
        if name != "s" or program.uses_s:
            rows[arm + row, :count] = lanes[name]
    flat = rows.reshape(-1)
    scalars = program.scalars.copy()
    # Another moment comes first; after it, the rows of constants are not filled again.
    for t, h, first in ((1.5, 0.5, 0), (moment["t"], moment["h"], program.constants)):
        scalars[:3] = t, h, moment["K"]
        machine.run_step(program.step_code, scalars)
        machine.spread_scalars(program.spread, scalars, flat, registers, stride, count, first)
    scratch = program.registers - opcodes.SCRATCH
    plain = np.empty(0, dtype)
    # What a memory keeps changes no value: it is filled first, and read then.
    memory = np.full(4 * 64, np.nan, dtype)
    found = []
    for kept in (plain, memory, memory):
        machine.run_lanes(
            program.lane_code, scalars, flat, arm, registers, out, stride, count, scratch, kept
        )
        found.append(rows[out, :count].copy())
    assert np.array_equal(found[0], found[1], equal_nan=True)
    assert np.array_equal(found[0], found[2], equal_nan=True)
    assert np.isnan(rows[:, count:]).all(), "the machine wrote beyond its lanes"
    assert np.isnan(rows[:arm]).all(), "the machine wrote to another arm"
    return rows[out, :count].astype(np.float64)


def check_machine(tree, seed, count=19):
    """Compare the machine, and NumPy, with the slow evaluator; the lanes that float32 was compared on."""
    rng = np.random.default_rng(seed)
    # float32 holds all these numbers exactly.
    lanes = {
        "n": rng.integers(1, 500, count).astype(float),
        "r": rng.integers(0, 65, count) / 64 + rng.choice([0, 0, 0, -2, 3], count),
        "s": rng.integers(0, 33, count) / 64,
        "w": rng.integers(0, 20, count).astype(float),
    }
    moment = {"t": float(rng.integers(2, 2000)), "h": float(rng.integers(1, 2000)), "K": 5.0}
    for dtype, size, most, relative in ((float, 1e-14, 1e290, 1e-9), (f32, 2.5e-7, 1e30, 1e-6)):
        slow = Slow(size, most, count, seed)
        results = [run_machine(tree, lanes, moment, dtype)]
        if dtype is float:
            results.append(np.broadcast_to(evaluate_tree(tree, lanes | moment), count))
        with np.errstate(all="ignore"):
            samples = slow.value(tree, lanes | moment)
            spread = np.abs(samples - samples[0]).max(axis=0)
        finite = np.isfinite(samples)
        # Where rounding can change more than the third digit there is nothing to compare.
        sure = finite.all(axis=0) & ~slow.unsure & (spread <= 1e-3 * np.abs(samples[0]))
        expected = samples[0, sure]
        room = relative * np.abs(expected) + 10 * spread[sure]
        for result in results:
            close = np.abs(result[sure] - expected) <= room
            assert close.all(), (text(tree), dtype, result[sure][~close], expected[~close])
            if dtype is float:
                lost = ~finite.any(axis=0) & ~slow.unsure
                assert not np.isfinite(result[lost]).any(), (text(tree), result[lost])
    return int(sure.sum())


@settings(deadline=None, max_examples=some(60, 300))
@given(trees(DIGITS | st.floats(0.001, 100)), st.integers(0, 2**32))
@example(parse("1/(r - r)"), 1)
@example(parse("max(ln(r - 9), 1)"), 1)
@example(parse("min(1, sqrt(0 - n))"), 1)
@example(parse("beta_quantile(r, h, 0.5)"), 0)
def test_the_machine_agrees_with_a_slow_evaluator(tree, seed):
    check_machine(tree, seed)


PROBES = """r + n | r - s | r*t | r/n | 1/n | -r | n^0.3 | r^2 | min(r, s) | max(r, s) | sqrt(n)
| ln(n) | exp(r) | abs(r) | t + h*K | ln(t)^1.5 | K | s | 2 | max(r, -n) + min(t, h) | kl_upper(s, 1/n)
| 1/sqrt(n) | 1/sqrt(t) | kl_upper(0.3, ln(t)) | beta_quantile(1/t, n, s + 2) | beta_quantile(1/t, K, h) | (r + s)*(r + s)"""


@pytest.mark.parametrize("expression", listed(PROBES))
def test_every_operator_is_compared_in_every_lane(expression):
    assert check_machine(parse(expression), seed=3, count=19) == 19


@pytest.mark.parametrize("degree", [1, 2, 3, 4])
def test_polynomials_are_compared_in_every_lane(degree):
    rng = np.random.default_rng(degree)
    weights = ", ".join(f"{number:.3f}" for number in rng.uniform(0.1, 1.0, (degree + 1) ** 4))
    expression = parse(f"polynomial(sqrt(ln(t)), 1/sqrt(n), abs(r), s, {weights})")
    assert check_machine(expression, seed=3, count=19) == 19
    within = parse(f"r + 2 * polynomial(K, s, n, 0.5, {weights})")
    assert check_machine(within, seed=4, count=19) == 19


def test_parameters_share_one_program():
    tree = parse("r + a/(n + b)", parameters=None)
    program = compile_expression(tree)
    one, two = program.bind({"a": 1.0, "b": 2.0}), program.bind({"a": -3.0, "b": 0.5})
    assert one.lane_code is two.lane_code
    assert {name: two.scalars[place] for name, place in two.parameters} == {"a": -3.0, "b": 0.5}
    assert np.isnan(program.scalars[[place for _, place in program.parameters]]).all()


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("polynomial(r, 1, 2, 3, " + ", ".join("1" * 16) + ")", "same for all arms"),
        ("polynomial(t, 1, 2, 3, " + ", ".join("1" * 15) + ", r)", "a number, not r"),
        ("polynomial(t, 1, 2, 3, " + ", ".join("1" * 15) + ", 1 + 1)", "numbers or parameters"),
    ],
)
def test_polynomials_that_the_machine_cannot_run_are_refused(text, word):
    with pytest.raises(InputError, match=word):
        compile_expression(parse(text))


def test_ln32_and_exp32():
    ln32, exp32 = callable_lane(special.ln32), callable_lane(special.exp32)
    x = np.concatenate([np.geomspace(1.2e-38, 3.4e38, 20_001), np.linspace(0.5, 2.0, 20_001)])
    x = x.astype(f32)
    expected = np.log(x.astype(float))
    assert np.allclose([ln32(item) for item in x], expected, rtol=2e-7, atol=0)
    x = np.linspace(-87.0, 88.0, 20_001).astype(f32)
    expected = np.exp(x.astype(float))
    assert np.allclose([exp32(item) for item in x], expected, rtol=1e-7, atol=0)
    edges = np.array([0.0, 1.0, -200.0, math.inf, -math.inf, math.nan], f32)
    logarithms = [-math.inf, 0.0, math.nan, math.inf, math.nan, math.nan]
    assert np.array_equal([ln32(item) for item in edges], logarithms, equal_nan=True)
    exponentials = [1.0, f32(math.e), 0.0, math.inf, 0.0, math.nan]
    assert np.array_equal([exp32(item) for item in edges], exponentials, equal_nan=True)
    assert exp32(f32(200.0)) == math.inf


def test_normal_quantile():
    normal_quantile = callable_lane(special.normal_quantile)
    tails = np.geomspace(1e-7, 0.1, 1000)
    p = np.concatenate([(np.arange(20_000) + 0.5) / 20_000, tails, 1 - tails]).astype(f32)
    result = np.array([normal_quantile(item) for item in p])
    assert np.allclose(result, scipy.stats.norm.ppf(p.astype(float)), rtol=4e-7, atol=4e-7)
    assert normal_quantile(f32(0.5)) == 0.0
    assert math.isnan(normal_quantile(f32(math.nan)))
    assert all(math.isfinite(normal_quantile(f32(end))) for end in (0.0, 1.0))


def test_kl_upper():
    means = [1e-6, 1e-4, 0.01, 0.1, 0.286, 0.5, 0.7, 0.99, 0.9999]
    bounds = [1e-10, 1e-9, 1e-8, 1e-7, 1e-6, 1e-5, *np.geomspace(1e-4, 15.0, 40)]
    mean, bound = (grid.ravel().astype(f32) for grid in np.meshgrid(means, bounds))
    pairs = list(zip(mean.astype(float), bound.astype(float), strict=True))
    last = 1.0 - 1e-16
    expected = [
        scipy.optimize.brentq(lambda q, m=m, b=b: divergence(m, q) - b, m, last, xtol=1e-15)
        if divergence(m, last) > b
        else 1.0
        for m, b in pairs
    ]
    # Near the mean the divergence is flat, so its rounding moves q by that / sqrt(bound).
    error64 = np.abs([special.kl_upper64(m, b) for m, b in pairs] - np.array(expected))
    assert (error64 <= 1e-12 + 1e-15 / np.sqrt(bound)).all()
    result = np.zeros_like(mean)
    special.kl_upper32(mean, bound, result, np.zeros_like(mean), np.zeros_like(mean))
    close = np.abs(result - expected) <= 1e-6 + 1.2e-7 / np.sqrt(bound)
    assert close.all(), np.stack([mean, bound, result, expected], axis=1)[~close]


def test_kl_upper_at_the_edges():
    nan, inf = math.nan, math.inf
    mean = np.array([0.5, 0.5, 0.5, 0.0, 1.0, -0.1, 1.1, nan, 0.5], f32)
    bound = np.array([0.0, -1.0, inf, 1.0, 1.0, 1.0, 1.0, 1.0, nan], f32)
    expected = [0.5, 0.5, 1.0, 1.0 - math.exp(-1.0), 1.0, nan, nan, nan, nan]
    result = np.zeros_like(mean)
    special.kl_upper32(mean, bound, result, np.zeros_like(mean), np.zeros_like(mean))
    assert np.allclose(result, expected, rtol=0, atol=1e-6, equal_nan=True)
    pairs = zip(mean.astype(float), bound.astype(float), strict=True)
    exact = [special.kl_upper64(m, b) for m, b in pairs]
    assert np.allclose(exact, expected, rtol=0, atol=1e-12, equal_nan=True)


def test_beta_quantile():
    shapes = [0.1, 0.5, 0.9, 1.0, 1.5, 2.0, 5.0, 18.0, 85.0, 1000.0, 10_000.0]
    chances = [1e-8, 1e-4, 1e-3, 0.01, 0.1, 0.3, 0.5, 0.7, 0.9, 0.99, 0.999, 0.9999, 1 - 1e-6]
    for a in shapes:
        for b in shapes:
            expected = scipy.special.betaincinv(a, b, chances)
            error = np.abs([special.beta_quantile(p, a, b) for p in chances] - expected)
            # Relative to the nearer end, but no better than a number near 1 can be.
            assert (error <= 1e-8 * np.minimum(expected, 1 - expected) + 5e-15).all(), (a, b, error)
    assert special.beta_quantile(0.0, 2.0, 3.0) == 0.0
    assert special.beta_quantile(1.0, 2.0, 3.0) == 1.0
    nan = math.nan
    for p, a, b in [
        (-0.1, 1, 1),
        (1.1, 1, 1),
        (0.5, 0, 1),
        (0.5, 1, -1),
        (nan, 1, 1),
        (0.5, nan, 1),
    ]:
        assert math.isnan(special.beta_quantile(p, float(a), float(b)))
