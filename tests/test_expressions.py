"""The language of index functions must mean what it says: as text, as LaTeX, and on the machine."""

import contextlib
import math

import numpy as np
import pytest
import scipy.optimize
import scipy.special
import scipy.stats
from hypothesis import example, given, settings
from hypothesis import strategies as st

import metabandit as mb
from metabandit.expressions import (
    OPERATORS,
    VARIABLES,
    Apply,
    Constant,
    Name,
    compile_expression,
    latex,
    length,
    parse,
    text,
)
from metabandit.kernels import machine, special

NUMBERS = st.integers(0, 9).map(float) | st.floats(0, allow_nan=False, allow_infinity=False)
PLAIN_NUMBERS = st.integers(0, 9).map(float) | st.floats(0.001, 100)


def trees(numbers, most=12):
    """Trees that the parser can produce: `1/x` is the operator invert."""

    def apply(operands):
        return st.sampled_from(sorted(OPERATORS)).flatmap(
            lambda name: st.tuples(*[operands] * OPERATORS[name].arity).map(
                lambda chosen: (
                    Apply("invert", chosen[1:])
                    if name == "divide" and chosen[0] == Constant(1.0)
                    else Apply(name, chosen)
                )
            )
        )

    leaves = st.sampled_from(sorted(VARIABLES)).map(Name) | numbers.map(Constant)
    return st.recursive(leaves, apply, max_leaves=most)


@given(trees(NUMBERS))
def test_text_reads_back_as_the_same_tree(tree):
    assert parse(text(tree)) == tree


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("r + n*t", "r + (n*t)"),
        ("r - n - t", "(r - n) - t"),
        ("r/n/t", "(r/n)/t"),
        ("r/n*t", "(r/n)*t"),
        ("r^n^t", "r^(n^t)"),
        ("r**2", "r^2"),
        ("-r^2", "-(r^2)"),
        ("2^-r", "2^(-r)"),
        ("-r*n", "(-r)*n"),
        ("r - -n", "r - (-n)"),
        ("+r - +n", "r - n"),
        ("1/n*t", "(1/n)*t"),
        ("1/n^2", "1/(n^2)"),
        (" sqrt ( r )\t", "sqrt(r)"),
        ("0.5e1 + .5", "5 + 0.5"),
    ],
)
def test_precedence_and_associativity(one, other):
    assert parse(one) == parse(other)


def test_different_groupings_are_different_trees():
    assert parse("r - (n - t)") != parse("r - n - t")
    assert parse("(r^n)^t") != parse("r^n^t")
    assert parse("1/n") == Apply("invert", (Name("n"),))
    assert parse("2/n") == Apply("divide", (Constant(2.0), Name("n")))


@pytest.mark.parametrize(
    ("expression", "symbols"),
    [
        ("r", 1),
        ("r + 2/n", 5),
        ("r + sqrt(2*ln(t)/n)", 9),
        ("sqrt(n) * (r - 1/2)", 7),
        ("r + 1/(n + 1/2)", 7),
        ("r + 3/(n + 2)", 7),
        ("abs(r - 1/(n + t))", 7),
        ("r + min(1/n, ln(2))", 7),
        ("1/n - 1/(r - 2)", 7),
    ],
)
def test_length_is_counted_as_in_the_paper(expression, symbols):
    assert length(parse(expression)) == symbols


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("r + 2/n", r"\bar{r}_k + \frac{2}{n_k}"),
        ("sqrt(2*ln(t)/n)", r"\sqrt{\frac{2 \, \ln(t)}{n_k}}"),
        ("(r + s)*K", r"\left(\bar{r}_k + \bar{\sigma}_k\right) \, K"),
        ("r - (n - h)", r"\bar{r}_k - \left(n_k - h\right)"),
        ("-(r + n)", r"-\left(\bar{r}_k + n_k\right)"),
        ("(r/n)^2", r"{\left(\frac{\bar{r}_k}{n_k}\right)}^{2}"),
        ("abs(min(r, 1/n))", r"\left|\min(\bar{r}_k, \frac{1}{n_k})\right|"),
    ],
)
def test_latex(expression, expected):
    assert latex(parse(expression)) == expected


@pytest.mark.parametrize(
    ("one", "other"), [("r * -n", "r - n"), ("2*3", "23"), ("1e-5*r", "1e - 5*r")]
)
def test_latex_of_different_expressions_looks_different(one, other):
    def seen(expression):
        return latex(parse(expression, parameters=("e",))).replace(r"\,", "").replace(" ", "")

    # 1e-05 in mathematics mode is a product and a difference; the zero is all that tells it apart.
    assert seen(one).replace("-0", "-") != seen(other)


def test_latex_of_a_power_of_a_power_has_parentheses():
    assert r"\left(" in latex(parse("(r^n)^t"))
    assert r"\left(" not in latex(parse("r^(n^t)"))


@pytest.mark.parametrize(
    ("expression", "position", "words"),
    [
        ("", 0, "empty"),
        ("  ", 0, "empty"),
        ("r + x", 4, "unknown variable 'x'"),
        ("ln(r + speed)", 7, "unknown variable 'speed'"),
        ("r + sqr(n)", 4, "unknown function 'sqr'"),
        ("r * (n + t", 10, "')'"),
        ("sqrt(n + t ", 10, "')'"),
        ("r + n)", 5, "')'"),
        ("r +  ", 3, "the end"),
        ("r + * n", 4, "'*'"),
        ("r + min(n)", 4, "min takes 2 arguments, here it has 1"),
        ("r + ln(n, t)", 4, "here it has 2"),
        ("r + ln()", 7, "')'"),
        ("r + ln", 4, "ln"),
        ("r $ n", 2, "'$'"),
        ("r + 2n", 5, "'n'"),
        ("r + 1e999", 4, "1e999"),
        ("r +\n$", 4, "'$'"),
        ("(" * 100 + "r" + ")" * 100, 100, "100 deep"),
        ("abs(" * 100 + "r" + ")" * 100, 400, "100 deep"),
    ],
)
def test_errors_point_at_the_character(expression, position, words):
    with pytest.raises(mb.ExpressionError) as caught:
        parse(expression)
    lines = str(caught.value).split("\n")
    assert words in lines[0]
    assert f"at character {position + 1}:" in lines[0]
    assert caught.value.position == position
    assert caught.value.expression == expression
    assert lines[-1] == " " * (2 + position) + "^"
    if position < len(expression.rstrip()):
        assert lines[-2][2 + position] == expression[position]


@pytest.mark.parametrize("link", [" + r", "^r", "^-r", "*r", " - -r"])
def test_long_expressions_are_run_or_refused(link):
    with contextlib.suppress(mb.ExpressionError):
        mb.policy("r" + link * 3000).plan(mb.Bernoulli(arms=2), 10)


class Slow:
    """Evaluates trees one node after another, in samples that differ by a little noise.

    Rows of every array are samples, columns are lanes. The first sample has no noise; in the others
    every result is off by up to `size`, relatively, so that their spread says how far rounding can
    move the value. `unsure` marks lanes where numbers leave the range [1 / most, most], or where
    the definition of a function leaves open what its value is.
    """

    def __init__(self, size, most, lanes, seed, samples=24):
        self.rng = np.random.default_rng(seed)
        self.most = most
        self.sizes = np.full((samples, 1), size)
        self.sizes[0] = 0.0
        self.unsure = np.zeros(lanes, bool)

    def noise(self):
        return self.sizes * self.rng.uniform(-1, 1, (len(self.sizes), len(self.unsure)))

    def rounded(self, value, scale=None):
        value = value + (value if scale is None else scale) * self.noise()
        sizes = np.abs(value)
        beyond = ((sizes > self.most) & (sizes < np.inf)) | ((sizes > 0) & (sizes < 1 / self.most))
        self.unsure |= beyond.any(axis=0)
        return value

    def value(self, tree, variables):
        if isinstance(tree, Constant):
            return self.rounded(np.full((len(self.sizes), len(self.unsure)), tree.value))
        if isinstance(tree, Name):
            return np.broadcast_to(variables[tree.name], (len(self.sizes), len(self.unsure)))
        x, y, z = ([self.value(item, variables) for item in tree.operands] + [None, None])[:3]
        if tree.operator == "power":
            if tree.operands[1] == Constant(2.0):
                return self.rounded(x * x)
            open_cases = ((x == 0) | (x == np.inf)) & (y == 0) | (x == 1) & np.isinf(y)
            self.unsure |= open_cases.any(axis=0)
            return self.rounded(np.exp(self.rounded(y * self.rounded(np.log(x)))))
        if tree.operator == "kl_upper":
            # The divergence is a sum of terms of size 1, so its rounding is absolute.
            return self.rounded(kl_upper(x, y + 4 * self.noise()))
        if tree.operator == "beta_quantile":
            self.unsure |= ((np.minimum(y, z) < 0.05) | (np.maximum(y, z) > 1e4)).any(axis=0)
            inside = (x >= 0) & (x <= 1) & (y > 0) & (z > 0)
            value = np.where(inside, scipy.special.betaincinv(y, z, x), np.nan)
            loose = 1e-8 * np.minimum(value, 1 - value) / max(self.sizes[-1, 0], 1e-8)
            return self.rounded(self.rounded(value), loose)
        unary = {
            "negate": np.negative,
            "invert": np.reciprocal,
            "sqrt": np.sqrt,
            "ln": np.log,
            "exp": np.exp,
            "abs": np.abs,
        }
        binary = {
            "add": np.add,
            "subtract": np.subtract,
            "multiply": np.multiply,
            "divide": np.divide,
            "min": np.minimum,
            "max": np.maximum,
        }
        value = unary[tree.operator](x) if y is None else binary[tree.operator](x, y)
        return self.rounded(value)


def divergence(p, q):
    return scipy.special.rel_entr(p, q) + scipy.special.rel_entr(1 - p, 1 - q)


def kl_upper(mean, bound):
    """The largest q in [mean, 1] with kl(mean, q) <= bound, by bisection."""
    mean, bound = np.broadcast_arrays(mean, bound)
    known = (mean >= -1e-12) & (mean <= 1 + 1e-12) & (bound == bound)
    p = np.clip(mean, 0, 1)
    low, high = p.copy(), np.ones_like(p)
    for _ in range(60):
        middle = (low + high) / 2
        under = divergence(p, middle) <= bound
        low, high = np.where(under, middle, low), np.where(under, high, middle)
    return np.where(known, np.where(bound > 0, low, mean), np.nan)


def run_machine(tree, lanes, moment, dtype):
    """The index of one arm in every lane, as the simulator asks the machine for it."""
    program = compile_expression(tree)
    count = len(lanes["n"])
    stride = count + 3
    arm, out, registers = 3, 6, 7  # rows; the first three belong to another arm
    file = np.full((registers + program.registers, stride), np.nan, dtype)
    for row, name in enumerate(("n", "r", "s")):
        if name != "s" or program.uses_s:
            file[arm + row, :count] = lanes[name]
    flat = file.reshape(-1)
    scalars = program.scalars.copy()
    # Another moment comes first; after it, the rows of constants are not filled again.
    for t, h, first in ((1.5, 0.5, 0), (moment["t"], moment["h"], program.constants)):
        scalars[:3] = t, h, moment["K"]
        machine.run_step(program.step_code, scalars)
        machine.spread_scalars(program.spread, scalars, flat, registers, stride, count, first)
    scratch = program.registers - machine.SCRATCH
    machine.run_lanes(program.lane_code, flat, arm, registers, out, stride, count, scratch)
    assert np.isnan(file[:, count:]).all(), "the machine wrote beyond its lanes"
    assert np.isnan(file[:arm]).all(), "the machine wrote to another arm"
    return file[out, :count].astype(np.float64)


def some_state(seed, count=19):
    """Statistics of one arm in `count` lanes; float32 holds every number exactly."""
    rng = np.random.default_rng(seed)
    lanes = {
        "n": rng.integers(1, 500, count).astype(float),
        "r": rng.integers(0, 65, count) / 64 + rng.choice([0, 0, 0, -2, 3], count),
        "s": rng.integers(0, 33, count) / 64,
    }
    moment = {"t": float(rng.integers(2, 2000)), "h": float(rng.integers(1, 2000)), "K": 5.0}
    return lanes, moment


def check_machine(tree, seed):
    """Compare the machine with the slow evaluator; returns the lanes that float32 was compared on."""
    lanes, moment = some_state(seed)
    for dtype, size, most, relative in (
        (np.float64, 1e-14, 1e290, 1e-9),
        (np.float32, 2.5e-7, 1e30, 1e-6),
    ):
        slow = Slow(size, most, len(lanes["n"]), seed)
        with np.errstate(all="ignore"):
            samples = slow.value(tree, {**lanes, **moment})
            result = run_machine(tree, lanes, moment, dtype)
            finite = np.isfinite(samples)
            sure = finite.all(axis=0) & ~slow.unsure
            spread = np.abs(samples[:, sure] - samples[0, sure]).max(axis=0)
        limit = relative * np.abs(samples[0, sure]) + 10 * spread + 1 / most
        error = np.abs(result[sure] - samples[0, sure])
        assert (error <= limit).all(), (text(tree), dtype, result[sure], samples[0, sure])
        if dtype is np.float64:
            lost = ~finite.any(axis=0) & ~slow.unsure
            assert not np.isfinite(result[lost]).any(), (text(tree), result[lost])
    return int(sure.sum())


@settings(max_examples=300, deadline=None)
@given(trees(PLAIN_NUMBERS), st.integers(0, 2**32))
@example(parse("1/(r - r)"), 1)
@example(parse("max(ln(r - 9), 1)"), 1)
@example(parse("min(1, sqrt(0 - n))"), 1)
def test_the_machine_agrees_with_a_slow_evaluator(tree, seed):
    check_machine(tree, seed)


@pytest.mark.parametrize(
    "expression",
    [
        *("r + n", "r - s", "r*t", "r/n", "1/n", "-r", "n^0.3", "r^2", "min(r, s)", "max(r, s)"),
        *("sqrt(n)", "ln(n)", "exp(r)", "abs(r)", "t + h*K", "ln(t)^1.5", "K", "s", "2"),
        *("kl_upper(s, 1/n)", "kl_upper(0.3, ln(t))", "beta_quantile(1/t, n, s + 2)"),
        *("beta_quantile(1/t, K, h)", "max(r, -n) + min(t, h)", "(r + s)*(r + s) + 0.1"),
    ],
)
def test_every_operator_is_compared_in_every_lane(expression):
    assert check_machine(parse(expression), seed=3) == 19


def test_ln32_and_exp32():
    x = np.concatenate([np.geomspace(1.2e-38, 3.4e38, 20_001), np.linspace(0.5, 2.0, 20_001)])
    x = x.astype(np.float32)
    expected = np.log(x.astype(np.float64))
    assert np.allclose([special.ln32(item) for item in x], expected, rtol=2e-7, atol=0)
    x = np.linspace(-87.0, 88.0, 20_001).astype(np.float32)
    expected = np.exp(x.astype(np.float64))
    assert np.allclose([special.exp32(item) for item in x], expected, rtol=1e-7, atol=0)
    f32 = np.float32
    for value, ln, exp in [
        (0.0, -math.inf, 1.0),
        (1.0, 0.0, f32(math.e)),
        (-200.0, math.nan, 0.0),
        (math.inf, math.inf, math.inf),
        (-math.inf, math.nan, 0.0),
        (math.nan, math.nan, math.nan),
    ]:
        assert np.array_equal(special.ln32(f32(value)), ln, equal_nan=True)
        assert np.array_equal(special.exp32(f32(value)), exp, equal_nan=True)
    assert special.exp32(f32(200.0)) == math.inf


def test_normal_quantile():
    tails = np.geomspace(1e-7, 0.1, 1000)
    p = np.concatenate([(np.arange(20_000) + 0.5) / 20_000, tails, 1 - tails]).astype(np.float32)
    expected = scipy.stats.norm.ppf(p.astype(np.float64))
    result = np.array([special.normal_quantile(item) for item in p])
    assert np.allclose(result, expected, rtol=4e-7, atol=4e-7)
    assert special.normal_quantile(np.float32(0.5)) == 0.0
    assert math.isnan(special.normal_quantile(np.float32(math.nan)))
    assert all(math.isfinite(special.normal_quantile(np.float32(end))) for end in (0.0, 1.0))


def kl_cases():
    means = [1e-6, 1e-4, 0.01, 0.1, 0.286, 0.5, 0.7, 0.99, 0.9999]
    bounds = [1e-10, 1e-9, 1e-8, 1e-7, 1e-6, 1e-5, *np.geomspace(1e-4, 15.0, 40)]
    mean, bound = (grid.ravel().astype(np.float32) for grid in np.meshgrid(means, bounds))
    expected = [
        scipy.optimize.brentq(lambda q, m=m, b=b: divergence(m, q) - b, m, 1.0 - 1e-16, xtol=1e-15)
        for m, b in zip(mean.astype(float), bound.astype(float), strict=True)
    ]
    return mean, bound, np.array(expected)


def test_kl_upper64():
    mean, bound, expected = kl_cases()
    result = [special.kl_upper64(float(m), float(b)) for m, b in zip(mean, bound, strict=True)]
    # The divergence is known to a few 1e-16, and near the mean it is flat: q to 1e-16 / sqrt(b).
    assert (np.abs(result - expected) <= 1e-12 + 1e-15 / np.sqrt(bound)).all()


def test_kl_upper32():
    mean, bound, expected = kl_cases()
    result = np.zeros_like(mean)
    special.kl_upper32(mean, bound, result, np.zeros_like(mean), np.zeros_like(mean))
    # As above with the rounding of float32.
    assert (np.abs(result - expected) <= 1e-6 + 1.2e-7 / np.sqrt(bound)).all()


@pytest.mark.parametrize(
    ("mean", "bound", "expected"),
    [
        (0.5, 0.0, 0.5),
        (0.5, -1.0, 0.5),
        (0.5, math.inf, 1.0),
        (0.0, 1.0, 1.0 - math.exp(-1.0)),
        (1.0, 1.0, 1.0),
        (-0.1, 1.0, math.nan),
        (1.1, 1.0, math.nan),
        (math.nan, 1.0, math.nan),
        (0.5, math.nan, math.nan),
    ],
)
def test_kl_upper_at_the_edges(mean, bound, expected):
    rows = np.array([[mean], [bound], [0.0], [0.0], [0.0]], np.float32)
    special.kl_upper32(*rows)
    assert rows[2, 0] == pytest.approx(expected, abs=1e-6, nan_ok=True)
    assert special.kl_upper64(mean, bound) == pytest.approx(expected, abs=1e-12, nan_ok=True)


def test_beta_quantile():
    shapes = [0.1, 0.5, 0.9, 1.0, 1.5, 2.0, 5.0, 18.0, 85.0, 1000.0, 10_000.0]
    chances = [1e-8, 1e-4, 1e-3, 0.01, 0.1, 0.3, 0.5, 0.7, 0.9, 0.99, 0.999, 0.9999, 1 - 1e-6]
    for a in shapes:
        for b in shapes:
            for p in chances:
                expected = scipy.special.betaincinv(a, b, p)
                error = abs(special.beta_quantile(p, a, b) - expected)
                # Relative to the nearer end, but no better than a number near 1 can be.
                assert error <= 1e-8 * min(expected, 1 - expected) + 5e-15, (p, a, b)
    assert special.beta_quantile(0.0, 2.0, 3.0) == 0.0
    assert special.beta_quantile(1.0, 2.0, 3.0) == 1.0
    for p, a, b in [(-0.1, 1, 1), (1.1, 1, 1), (0.5, 0, 1), (0.5, 1, -1), (math.nan, 1, 1)]:
        assert math.isnan(special.beta_quantile(p, float(a), float(b)))
    assert math.isnan(special.beta_quantile(0.5, math.nan, 1.0))
