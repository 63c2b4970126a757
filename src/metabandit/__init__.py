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
    from .bayes.bounds import Bound, lower_bound
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
    from .errors import IndexFault, InputError, StoreError, WorkerError
    from .exporting import export
    from .feedback import Feedback
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
    from .play import ArmView, Choice, Player, load_player
    from .policies import (
        ChoicePolicy,
        ConstrainedPolicy,
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
    from .priors import (
        Bernoulli,
        BetaRewards,
        Counts,
        Empirical,
        Gaussian,
        Hierarchical,
        Prior,
        Revenue,
        Table,
        TruncatedGaussian,
        prior,
    )
    from .priors.families import BERNOULLI, BETA, GAUSSIAN, Family
    from .priors.fitting import Fitted, fit_prior
    from .replaying import Estimate, Log, Replay, Replayed, read_log, replay
    from .report import load_report, write_report
    from .studies.run import Records, reproduce
    from .trials import Characteristics, FinalStates, Trial, final_states, operating_characteristics

__version__ = "0.1.0"

__all__ = [
    "BERNOULLI",
    "BETA",
    "GAUSSIAN",
    "Advice",
    "ArmView",
    "Bernoulli",
    "BetaRewards",
    "Bound",
    "Characteristics",
    "Choice",
    "ChoicePolicy",
    "Classes",
    "Cluster",
    "Comparison",
    "ConstrainedPolicy",
    "Contestant",
    "Counts",
    "Difference",
    "Empirical",
    "Entry",
    "Episode",
    "Estimate",
    "Evaluation",
    "ExpressionError",
    "Family",
    "Feedback",
    "FinalStates",
    "Fitted",
    "Found",
    "Gaussian",
    "Grammar",
    "Hierarchical",
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
    "Revenue",
    "Start",
    "StoreError",
    "Table",
    "Trial",
    "TruncatedGaussian",
    "WorkerError",
    "advise",
    "classify",
    "evaluate",
    "evaluate_external",
    "every_state",
    "export",
    "final_states",
    "fit_prior",
    "general_sample",
    "learn",
    "load",
    "load_player",
    "load_report",
    "lower_bound",
    "make_classes",
    "operating_characteristics",
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
    "feedback",
    "policies",
    "play",
    "exporting",
    "language",
    "priors.families",
    "priors",
    "priors.fitting",
    "bayes.bounds",
    "bayes.optimum",
    "engine",
    "replaying",
    "trials",
    "learning",
    "formulas",
    "advice",
    "studies.run",
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
