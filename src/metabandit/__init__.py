"""metabandit: the best exploration/exploitation strategy for your kind of bandit problem.

>>> import metabandit as mb
>>> prior = mb.Bernoulli(arms=2)
>>> result = mb.evaluate(["ucb1", "r + 3/(n + 2)"], prior, horizon=100, episodes=10_000)
>>> result.ranking()[0].policy
'r + 3/(n + 2)'

The names below are loaded when they are first used, so that the command line answers at once.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .errors import InputError
    from .evaluation import Comparison, Difference, Evaluation, IndexFault, evaluate, recount
    from .experiments import Records, reproduce
    from .exporting import export
    from .expressions import ExpressionError
    from .families import BERNOULLI, BETA, GAUSSIAN, Family
    from .formulas import (
        Classes,
        Found,
        Grammar,
        RankedFormula,
        classify,
        every_state,
        general_sample,
        make_classes,
        reachable_sample,
        search,
        sharpen,
    )
    from .learning import Learned, Optimizer, learn, register_optimizer
    from .policies import (
        ChoicePolicy,
        Entry,
        IndexPolicy,
        OptimalPolicy,
        Optimum,
        Parameter,
        Policy,
        Start,
        optimal,
        policy,
        register,
    )
    from .priors import Bernoulli, BetaRewards, Gaussian, Prior, Table, TruncatedGaussian, prior
    from .report import load_report, write_report

__version__ = "0.1.0"

__all__ = [
    "BERNOULLI",
    "BETA",
    "GAUSSIAN",
    "Bernoulli",
    "BetaRewards",
    "ChoicePolicy",
    "Classes",
    "Comparison",
    "Difference",
    "Entry",
    "Evaluation",
    "ExpressionError",
    "Family",
    "Found",
    "Gaussian",
    "Grammar",
    "IndexFault",
    "IndexPolicy",
    "InputError",
    "Learned",
    "OptimalPolicy",
    "Optimizer",
    "Optimum",
    "Parameter",
    "Policy",
    "Prior",
    "RankedFormula",
    "Records",
    "Start",
    "Table",
    "TruncatedGaussian",
    "classify",
    "evaluate",
    "every_state",
    "export",
    "general_sample",
    "learn",
    "load_report",
    "make_classes",
    "optimal",
    "policy",
    "prior",
    "reachable_sample",
    "recount",
    "register",
    "register_optimizer",
    "reproduce",
    "search",
    "sharpen",
    "write_report",
]

_HOMES = (
    "errors",
    "evaluation",
    "expressions",
    "families",
    "policies",
    "priors",
    "learning",
    "formulas",
    "experiments",
    "report",
    "exporting",
)


def __dir__() -> list[str]:
    return [*__all__, "__version__"]


def __getattr__(name: str) -> Any:
    if name in __all__:
        for home in _HOMES:
            module = import_module(f".{home}", __name__)
            if name in getattr(module, "__all__", dir(module)):
                value = getattr(module, name)
                globals()[name] = value
                return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
