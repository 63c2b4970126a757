"""metabandit: the best exploration/exploitation strategy for your kind of bandit problem.

    >>> import metabandit as mb
    >>> prior = mb.Bernoulli(arms=2)
    >>> result = mb.evaluate(["ucb1", "r + 3/(n + 2)"], prior, horizon=100, episodes=10_000)
    >>> print(result.table())  # doctest: +SKIP
"""

from importlib.metadata import version

from .errors import InputError
from .evaluate import Comparison, Difference, Evaluation, IndexFault, evaluate
from .expressions import ExpressionError
from .families import BERNOULLI, BETA, GAUSSIAN, Family
from .policies import ChoicePolicy, Entry, IndexPolicy, Parameter, Policy, Start, policy, register
from .priors import Bernoulli, BetaRewards, Gaussian, Prior, Table, TruncatedGaussian, prior

__version__ = version("metabandit")

__all__ = [
    "BERNOULLI",
    "BETA",
    "GAUSSIAN",
    "Bernoulli",
    "BetaRewards",
    "ChoicePolicy",
    "Comparison",
    "Difference",
    "Entry",
    "Evaluation",
    "ExpressionError",
    "Family",
    "Gaussian",
    "IndexFault",
    "IndexPolicy",
    "InputError",
    "Parameter",
    "Policy",
    "Prior",
    "Start",
    "Table",
    "TruncatedGaussian",
    "evaluate",
    "policy",
    "prior",
    "register",
]
