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
    from .advice import Advice, advise
    from .bayes.optimum import Optimum, optimal
    from .cluster import Cluster
    from .engine import (
        Comparison,
        Contestant,
        Difference,
        Episode,
        Evaluation,
        evaluate,
        evaluate_external,
        recount,
    )
    from .errors import IndexFault, InputError, WorkerError
    from .exporting import export
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
    from .language import ExpressionError, register_operator
    from .learning import Learned, Optimizer, learn, register_optimizer
    from .play import ArmView, Player, load_player
    from .policies import (
        ChoicePolicy,
        Entry,
        IndexPolicy,
        OptimalPolicy,
        Parameter,
        Policy,
        Start,
        load,
        policy,
        register,
    )
    from .priors import Bernoulli, BetaRewards, Gaussian, Prior, Table, TruncatedGaussian, prior
    from .priors.families import BERNOULLI, BETA, GAUSSIAN, Family
    from .replaying import Log, Replay, Replayed, read_log, replay
    from .report import load_report, write_report
    from .studies.maes2012 import Records, reproduce

__version__ = "0.1.0"

__all__ = [
    "BERNOULLI",
    "BETA",
    "GAUSSIAN",
    "Advice",
    "ArmView",
    "Bernoulli",
    "BetaRewards",
    "ChoicePolicy",
    "Classes",
    "Cluster",
    "Comparison",
    "Contestant",
    "Difference",
    "Entry",
    "Episode",
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
    "Log",
    "OptimalPolicy",
    "Optimizer",
    "Optimum",
    "Parameter",
    "Player",
    "Policy",
    "Prior",
    "RankedFormula",
    "Records",
    "Replay",
    "Replayed",
    "Start",
    "Table",
    "TruncatedGaussian",
    "WorkerError",
    "advise",
    "classify",
    "evaluate",
    "evaluate_external",
    "every_state",
    "export",
    "general_sample",
    "learn",
    "load",
    "load_player",
    "load_report",
    "make_classes",
    "optimal",
    "policy",
    "prior",
    "reachable_sample",
    "read_log",
    "recount",
    "register",
    "register_operator",
    "register_optimizer",
    "replay",
    "reproduce",
    "search",
    "sharpen",
    "write_report",
]

# What starts fast comes first: a name is looked for in one after the other. Studies come before
# reports, in which they register their own.
_HOMES = (
    "errors",
    "policies",
    "play",
    "exporting",
    "language",
    "priors.families",
    "priors",
    "bayes.optimum",
    "engine",
    "replaying",
    "learning",
    "formulas",
    "advice",
    "studies.maes2012",
    "report",
    "cluster",
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
