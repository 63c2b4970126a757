"""What is known of the problems in advance: reward families, and priors over problems."""

from .base import Prior, check_prior
from .families import BERNOULLI, BETA, GAUSSIAN, Family
from .parametric import Bernoulli, BetaRewards, Gaussian, TruncatedGaussian
from .reading import PRIOR_KEYS, PRIORS, prior
from .table import Table

__all__ = [
    "BERNOULLI",
    "BETA",
    "GAUSSIAN",
    "PRIORS",
    "PRIOR_KEYS",
    "Bernoulli",
    "BetaRewards",
    "Family",
    "Gaussian",
    "Prior",
    "Table",
    "TruncatedGaussian",
    "check_prior",
    "prior",
]
