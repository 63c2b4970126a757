"""The language of index functions must mean what it says: as text and as LaTeX."""

import contextlib
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import metabandit as mb
from metabandit.language import Apply, Constant, Name, latex, length, parse, text
from metabandit.language.operators import OPERATORS, VARIABLES
from tests.tiers import some


def trees(numbers):
    """Trees that the parser can produce: `1/x` is the operator invert."""

    def apply(name, operands):
        inverse = name == "divide" and operands[0] == Constant(1.0)
        return Apply("invert", operands[1:]) if inverse else Apply(name, operands)

    def grow(smaller):
        choices = [
            st.builds(apply, st.just(name), st.tuples(*[smaller] * operator.arity))
            for name, operator in OPERATORS.items()
            if operator.arity is not None and operator.own is None
        ]
        return st.one_of(choices)

    leaves = st.sampled_from(sorted(VARIABLES)).map(Name) | numbers.map(Constant)
    return st.recursive(leaves, grow, max_leaves=12)


DIGITS = st.integers(0, 9).map(float)


@settings(deadline=None, max_examples=some(75, 300))
@given(trees(DIGITS | st.floats(0, allow_nan=False, allow_infinity=False)))
def test_text_reads_back_as_the_same_tree(tree):
    assert parse(text(tree)) == tree


def listed(expressions):
    return [item.strip() for item in expressions.split("|")]


SAME = """r + n*t = r + (n*t) | r - n - t = (r - n) - t | r/n/t = (r/n)/t | r/n*t = (r/n)*t
| r^n^t = r^(n^t) | r**2 = r^2 | -r^2 = -(r^2) | 2^-r = 2^(-r) | -r*n = (-r)*n | r - -n = r - (-n)
| +r - +n = r - n | 1/n*t = (1/n)*t | 1/n^2 = 1/(n^2) | sqrt ( r ) = sqrt(r) | 0.5e1 + .5 = 5 + 0.5"""


@pytest.mark.parametrize("pair", listed(SAME))
def test_precedence_and_associativity(pair):
    one, other = pair.split("=")
    assert parse(one) == parse(other)


def test_different_groupings_are_different_trees():
    assert parse("r - (n - t)") != parse("r - n - t")
    assert parse("(r^n)^t") != parse("r^n^t")
    assert parse("1/n") == Apply("invert", (Name("n"),))
    assert parse("2/n") == Apply("divide", (Constant(2.0), Name("n")))


@pytest.mark.parametrize(
    "written",
    listed("r + 3/(n + 2) | r - n - t | r - (n - t) | r/n/t | 1/n^2 | -r^2 | sqrt(2 * ln(t)/n)"),
)
def test_text_has_no_needless_parentheses(written):
    assert text(parse(written)) == written


SEVEN = """sqrt(n) * (r - 1/2) | r + 1/(n + 1/2) | r + 3/(n + 2) | abs(r - 1/(n + t))
| r + min(1/n, ln(2)) | 1/n - 1/(r - 2)"""


def test_length_is_counted_as_in_the_paper():
    assert length(parse("r + 2/n")) == 5
    assert length(parse("r + sqrt(2*ln(t)/n)")) == 9
    assert {formula: length(parse(formula)) for formula in listed(SEVEN)} == dict.fromkeys(
        listed(SEVEN), 7
    )


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


def test_latex_cannot_be_misread():
    def seen(expression):
        return latex(parse(expression)).replace(r"\,", "").replace(" ", "")

    assert seen("r * -n") != seen("r - n")
    assert seen("2*3") != seen("23")
    assert r"\left(" in seen("(r^n)^t")
    assert r"\left(" not in seen("r^(n^t)")
    assert not re.search(r"\de", seen("1e-5*t")), "in mathematics mode e is a variable"


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
        ("(" * 50 + "r" + ")" * 50, 50, "50 deep"),
        ("abs(" * 50 + "r" + ")" * 50, 200, "50 deep"),
        ("r + " * 100 + "$" + " + r" * 100, 400, "'$'"),
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
    assert lines[-1].strip() == "^"
    assert max(map(len, lines)) < 200, "of a long expression, only what is around the place"
    column = lines[-1].index("^")
    if len(expression) < 100:
        assert column == 2 + position
    if position < len(expression.rstrip()):
        assert lines[-2][column] == expression[position]


@pytest.mark.parametrize("link", [" + r", "^r", "^-r", "*r", " - -r"])
def test_long_expressions_are_run_or_refused(link):
    with contextlib.suppress(mb.ExpressionError):
        mb.policy("r" + link * 3000).plan(mb.Bernoulli(arms=2), 10)
