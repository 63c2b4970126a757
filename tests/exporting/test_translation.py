"""Own operators in exported programs: their text, its translations, and what cannot be translated."""

import math

import numpy as np
import pytest

import metabandit as mb
from metabandit import numerics
from metabandit.exporting.translation import helper
from metabandit.language import register_operator
from tests import exported
from tests.exporting.test_export import PROGRAMS, difference, draw_states, machine

LIMIT = 3.0


def winding(x, y, z):
    """Everything that a translation knows; nobody's function is like that."""
    total = low = 0.0
    high, count = max(x, y, 0.25), 0
    low, high = high, low
    for step in range(1, 6):
        if step == 3:
            continue
        elif (not (x < y <= 1e9) and step > 4) or z != z:
            break
        else:
            total += math.log1p(abs(x)) / step - (x - (y - z)) * 1e-3
    # A comment goes along.
    while count < 4:
        count += 1
        total -= math.exp(-total * total) if total > 0.0 else -(0.5**2)
    if math.isnan(total):
        return math.inf
    return total + low - high + math.pi / 2 - math.atan2(y, 1.0) + math.floor(x) + math.e


def logit(x):
    # Where there is none, no number.
    if x <= 0.0 or x >= 1.0:
        return math.nan
    return math.log(x / (1.0 - x))


def limited(x):
    return min(x, LIMIT)


def elsewhere(x):
    return numerics.divide(x, 2.0)


def listing(x):
    values = [x, 2.0]
    return values[0]


def squashed(x):
    return x / (1.0 + x)


@pytest.fixture(scope="module", autouse=True)
def own():
    register_operator("winding", winding)
    register_operator("logit", logit)
    register_operator("limited", limited)
    register_operator("elsewhere", elsewhere)
    register_operator("listing", listing)
    register_operator("shrunk", lambda x: x / 2.0)
    texts = dict.fromkeys(("python", "javascript", "c", "sql"), "{0} / (1 + {0})")
    register_operator("squashed", squashed, exports=texts)


FORMULAS = [
    "winding(r, s, n)",
    "r + winding(s, 1/n, -ln(t))/t",
    "1/winding(h, r, 2)",
    "r - squashed(n - s)*2",
    "-squashed(1/n)^2",
    "logit(max(1e-3, min(r, 0.999)))",
]


@pytest.mark.parametrize("language", PROGRAMS)
def test_an_exported_operator_is_what_the_machine_computes(language, tmp_path):
    states = draw_states(3)
    policies = [mb.IndexPolicy(formula) for formula in FORMULAS]
    programs = [mb.export(policy, language, horizon=100) for policy in policies]
    answers = exported.run(language, programs, tmp_path, "index", states)
    for policy, answer in zip(policies, answers.reshape(len(policies), -1), strict=True):
        error, same = difference(answer, machine(policy, states))
        assert same, policy.name
        assert error <= 1e-12, policy.name


def test_sql_takes_the_given_text_only():
    rows = exported.run_sql(mb.export("r - squashed(n - 1)*2", "sql"), [[[3, 1, 1], [5, 4, 4]]])[0]
    for arm, n, r, index in rows:
        assert index == pytest.approx(r - 2 * (n - 1) / n), arm
    with pytest.raises(
        mb.InputError, match=r"logit cannot be exported to sql.*python, javascript, c"
    ):
        mb.export("logit(r)", "sql")


def test_docstrings_and_comments_go_along():
    written = mb.export("winding(r, s, n)", "c")
    assert "/* Everything that a translation knows; nobody's function is like that. */" in written
    assert "  // A comment goes along.\n" in written
    assert "    # Where there is none, no number.\n" in mb.export("logit(r)", "python")


REFUSED = [
    ("limited(r)", "python", "uses LIMIT from outside"),
    ("elsewhere(r)", "python", "uses numerics from outside"),
    ("elsewhere(r)", "javascript", r"uses numerics from outside"),
    ("listing(r)", "c", r"no arithmetic, in line 2.*values = \[x, 2.0\]"),
    ("shrunk(r)", "python", "not known; define it with def"),
    ("shrunk(r)", "c", "not known; define it with def"),
]


@pytest.mark.parametrize(("formula", "language", "message"), REFUSED)
def test_what_cannot_be_translated_is_refused_with_its_line(formula, language, message):
    with pytest.raises(mb.InputError, match=message):
        mb.export(formula, language)


@pytest.mark.parametrize("language", ["python", "javascript", "c"])
def test_every_function_of_an_index_has_a_translation(language):
    names = ("sqrt", "ln", "exp", "power", "minimum", "maximum", "kl_upper")
    for name in (*names, "stirling_rest", "beta_fraction", "beta_start", "beta_quantile"):
        written = helper(name, language)
        known = language == "c" and name in ("sqrt", "exp")  # the library's
        assert (written is None) == known, name
        assert known or max(map(len, written.splitlines())) <= 100, name


def test_the_gamma_function_of_javascript(tmp_path):
    register_operator("log_gamma", log_gamma)
    states = draw_states(4)
    program = mb.export("log_gamma(n/8)", "javascript")
    answers = exported.run("javascript", [program], tmp_path, "index", states)
    expected = [math.lgamma(n / 8) for n in states[..., 2].ravel()]
    assert answers == pytest.approx(np.array(expected), rel=1e-14, abs=1e-14)


def log_gamma(x):
    return math.lgamma(x)
