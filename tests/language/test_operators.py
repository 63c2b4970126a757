"""The table of operators has a form for every target, and a person's own operator works everywhere."""

import math
import pickle
import subprocess
import sys

import cloudpickle
import numpy as np
import pytest

import metabandit as mb
from metabandit.kernels import opcodes
from metabandit.language import OPERATORS, Apply, Name, latex, parse, register_operator, text
from metabandit.language.compile import compile_expression
from metabandit.language.operators import LANGUAGES
from metabandit.language.values import evaluate_tree
from metabandit.play.arm import Arm
from metabandit.play.index import index_values
from tests.kernels.test_machine import run_machine

BUILT_IN = {name: operator for name, operator in OPERATORS.items() if operator.own is None}


def twice(x):
    return x + x


def blend(x, y, z):
    """Between x and y."""
    share = 0.5 if z < 0.0 else 1.0 / (1.0 + z)
    while share > 0.9:
        share *= 0.5
    return share * x + (1.0 - share) * y


def faulty(x):
    return math.log(x) / (x - 1.0)


@pytest.fixture(scope="module", autouse=True)
def own():
    register_operator("twice", twice, meaning="x + x", latex="2 {0}")
    register_operator("blend", blend)
    register_operator("faulty", faulty)


@pytest.mark.parametrize("name", BUILT_IN)
def test_every_operator_has_a_form_for_every_target_or_says_why_not(name):
    operator = BUILT_IN[name]
    assert operator.meaning
    assert operator.latex
    assert operator.opcode == getattr(opcodes, name.upper())
    assert callable(operator.function)
    assert operator.array is None or not operator.array or hasattr(np, operator.array)
    for language in LANGUAGES:
        words = operator.rewritten or operator.refused.get(language, "")
        assert operator.form(language) is not None or " " in words, (name, language)
    assert set(operator.forms) <= {*LANGUAGES, "safe python", "safe sql"}
    # What may raise in Python has a form that does not.
    if operator.raises(*[(-math.inf, math.inf)] * (operator.arity or 20)):
        assert "safe python" in operator.forms


def test_the_machine_has_no_other_numbers():
    own_numbers = {"COPY", "REDUCE", "INVERT_SQRT", "EXTERNAL"}
    sizes = {"WIDTH", "SCRATCH"}
    named = {name for name, value in vars(opcodes).items() if isinstance(value, int)}
    assert named - own_numbers - sizes == {name.upper() for name in BUILT_IN}
    numbers = [getattr(opcodes, name) for name in named - sizes]
    assert sorted(numbers) == list(range(len(numbers)))


LANES = {
    "n": np.array([1.0, 2.0, 7.0, 400.0]),
    "w": np.array([0.0, 1.0, 0.0, 30.0]),
    "r": np.array([0.0, 0.25, 0.5, 1.0]),
    "s": np.array([0.5, 0.25, 0.125, 0.0]),
}
MOMENT = {"t": 410.0, "h": 90.0, "K": 3.0}


def live(tree):
    """The index of the lanes as arms of a player."""
    arms = [
        Arm("arm", n, n * r, mean=r, deviation=s)
        for n, r, s in zip(*(LANES[name].tolist() for name in "nrs"), strict=True)
    ]
    return index_values(tree)(arms, MOMENT["t"], MOMENT["h"], 3)


@pytest.mark.parametrize("name", [name for name in BUILT_IN if name != "polynomial"])
def test_the_scalar_function_is_what_machine_numpy_and_player_compute(name):
    operator = OPERATORS[name]
    tree = Apply(name, (Name("r"), Name("n"), parse("s + 1"))[: operator.arity])
    states = zip(*(LANES[key].tolist() for key in "rns"), strict=True)
    expected = [operator.function(*(r, n, s + 1.0)[: operator.arity]) for r, n, s in states]
    for values in (
        run_machine(tree, LANES, MOMENT, float),
        evaluate_tree(tree, LANES | MOMENT),
        live(tree),
    ):
        assert values == pytest.approx(expected, rel=1e-12, nan_ok=True)
    narrow = run_machine(tree, LANES, MOMENT, np.float32)
    assert narrow == pytest.approx(expected, rel=2e-6, nan_ok=True)


# A person's own ----------------------------------------------------------------------------------

SAME = [
    ("r + 1/twice(n)", "r + 1/(n + n)"),
    ("twice(ln(t))/n + r", "(ln(t) + ln(t))/n + r"),
    ("r + sqrt(twice(ln(t))/twice(n))", "r + sqrt((ln(t) + ln(t))/(n + n))"),
]


@pytest.mark.parametrize(("own", "plain"), SAME)
def test_an_own_operator_is_evaluated_simulated_and_played(own, plain):
    prior = mb.Bernoulli()
    for options in ({"method": "exact"}, {"method": "monte-carlo", "episodes": 3000}):
        result = mb.evaluate([own, plain], prior, horizon=40, **options)
        assert result[own].mean_regret == pytest.approx(result[plain].mean_regret, rel=1e-12)
    players = [mb.policy(formula).player(3, seed=5) for formula in (own, plain)]
    for step in range(60):
        first, second = (player.select() for player in players)
        assert first == second
        for player in players:
            player.update(first, float(step % (first + 2) == 0))


def test_an_own_operator_has_the_same_value_everywhere():
    tree = parse("blend(r, s, n) + blend(ln(t), K, 0)")
    assert parse(text(tree)) == tree
    step = blend(math.log(MOMENT["t"]), MOMENT["K"], 0.0)
    lanes = zip(*(LANES[key] for key in "rsn"), strict=True)
    expected = [blend(*lane) + step for lane in lanes]
    for values in (run_machine(tree, LANES, MOMENT, float), evaluate_tree(tree, LANES | MOMENT)):
        assert values == pytest.approx(expected, rel=1e-14)
    assert live(tree) == pytest.approx(expected, rel=1e-14)
    assert run_machine(tree, LANES, MOMENT, np.float32) == pytest.approx(expected, rel=1e-6)


def test_an_own_operator_is_printed():
    tree = parse("r + twice(n + 1)/blend(r, s, t)")
    assert text(tree) == "r + twice(n + 1)/blend(r, s, t)"
    assert (
        latex(tree)
        == r"\bar{r}_k + \frac{2 \left(n_k + 1\right)}{\mathrm{blend}(\bar{r}_k, \bar{\sigma}_k, t)}"
    )


def test_where_python_raises_an_own_operator_is_no_number():
    tree = parse("faulty(r)")
    assert np.isnan(evaluate_tree(tree, LANES)[[0, 3]]).all()
    assert np.isnan(np.array(live(tree))[[0, 3]]).all()
    with pytest.raises(mb.IndexFault):
        mb.evaluate(["faulty(r)"], mb.Bernoulli(), horizon=10)


def test_parameters_may_have_the_name_of_an_own_operator():
    policy = mb.IndexPolicy("r + twice/twice(n)", parameters={"twice": 3.0})
    assert policy.formula == "r + 3/twice(n)"
    with pytest.raises(mb.ExpressionError, match="needs its arguments"):
        parse("r + twice/n")


ELSEWHERE = """
import pickle, sys
import metabandit as mb
from metabandit.language import OPERATORS
policy, program = pickle.load(sys.stdin.buffer)
assert "steep" in OPERATORS
print(mb.evaluate([policy], mb.Bernoulli(), horizon=30).ranking()[0].mean_regret)
import numpy as np
from metabandit.kernels import machine, opcodes
rows = np.ones((7 + program.registers) * 8)
scalars = program.scalars.copy()
scalars[:3] = 5.0, 6.0, 2.0
machine.run_step(program.step_code, scalars)
machine.spread_scalars(program.spread, scalars, rows, 7, 8, 8, 0)
machine.run_lanes(
    program.lane_code, scalars, rows, 0, 7, 6, 8, 8, program.registers - opcodes.SCRATCH, rows[:0]
)
print(rows[48])
"""


def test_an_own_operator_goes_along_to_other_processes():
    scope = {"__name__": "__main__"}
    exec("def steep(x, y):\n    return x * x * x + y\n", scope)
    register_operator("steep", scope["steep"])
    policy = mb.IndexPolicy("r + a*steep(1/n, 0)", parameters={"a": 0.5})
    program = compile_expression(policy.tree).bind({"a": 3.0})
    done = subprocess.run(
        [sys.executable, "-c", ELSEWHERE],
        input=cloudpickle.dumps((policy, program)),
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr.decode()
    regret, value = map(float, done.stdout.split())
    here = mb.evaluate([policy], mb.Bernoulli(), horizon=30).ranking()[0].mean_regret
    assert regret == here
    assert value == 4.0
    # A tree of built-in operators needs none of that.
    tree = parse("r + 1/sqrt(n)")
    assert pickle.loads(pickle.dumps(tree)) == tree


def test_another_function_under_a_known_name_is_refused_wherever_it_comes_from():
    register_operator("twice", twice)
    register_operator(**OPERATORS["twice"].declared)
    with pytest.raises(mb.InputError, match=r"operator twice already.*another name"):
        register_operator("twice", lambda x: 3.0 * x)


def no_numbers(x):
    return [x, "text"]


REFUSED = [
    (("t", twice), {}, "is a variable"),
    (("min", blend), {}, "an operator min already"),
    (("two words", twice), {}, "letters, digits and _"),
    (("root", math.sqrt), {}, "write one with def"),
    (("many", lambda a, b, c, d: a), {}, "1 to 3 operands; many has 4"),
    (("none", lambda: 1.0), {}, "1 to 3 operands; none has 0"),
    (("thrice", twice), {"arity": 2}, "cannot be called with 2 numbers"),
    (("thrice", twice), {"exports": {"rust": "{0}"}}, "no export to 'rust'"),
    (("thrice", twice), {"exports": {"c": "3 * x"}}, "a text with {0}"),
    (("thrice", twice), {"latex": "{3}"}, "cannot be read"),
    (("thrice", twice), {"latex": "{"}, "cannot be read"),
]


@pytest.mark.parametrize(("given", "options", "message"), REFUSED)
def test_what_is_no_operator_is_refused_with_the_rule(given, options, message):
    with pytest.raises(mb.InputError, match=message):
        register_operator(*given, **options)


def test_a_function_that_numba_cannot_compile_is_refused_when_it_is_evaluated():
    register_operator("no_numbers", no_numbers)
    for method in ("exact", "monte-carlo"):
        with pytest.raises(mb.InputError, match="operator no_numbers cannot be compiled"):
            mb.evaluate(["r + no_numbers(n)"], mb.Bernoulli(), horizon=10, method=method)


def test_formulas_that_are_enumerated_have_no_own_operators():
    with pytest.raises(mb.InputError, match=r"operator of your own.*grammar"):
        mb.classify(["twice(r)"])
    with pytest.raises(mb.InputError, match=r"operator of your own.*grammar"):
        mb.make_classes(2, grammar=mb.Grammar(operators=("add", "twice")))


def test_an_own_operator_that_raises_has_no_value():
    def picky(x):
        if x > 3:
            raise ValueError("too large")
        return x

    mb.register_operator("picky", picky)
    for method in ("exact", "monte-carlo"):
        with pytest.raises(mb.IndexFault, match="not a number"):
            mb.evaluate("r + picky(n)", mb.Bernoulli(), 12, method=method)
    player = mb.policy("r + picky(n)").player(2)
    player.update_many([(arm, 1) for arm in (0, 1) for _ in range(5)])
    with pytest.raises(mb.IndexFault, match="not a number"):
        player.select()


SCALE = 3.0


def test_what_an_own_operator_needs_from_outside_cannot_be_exported():
    def scaled(x):
        return SCALE * x

    mb.register_operator("scaled_outside", scaled)
    for language in ("python", "javascript", "c"):
        with pytest.raises(mb.InputError, match="SCALE from outside"):
            mb.export("r + scaled_outside(n)", language)
