"""What is known of the problems in advance: reward families, priors over problems, past problems."""

from .families import BERNOULLI, BETA, GAUSSIAN, Array, Family, truncated_gaussian_family
from .kinds import (
    PRIOR_KEYS,
    PRIORS,
    Bernoulli,
    BetaRewards,
    Gaussian,
    Prior,
    Table,
    TruncatedGaussian,
    check_prior,
    prior,
)

__all__ = [
    "BERNOULLI",
    "BETA",
    "GAUSSIAN",
    "PRIORS",
    "PRIOR_KEYS",
    "Array",
    "Bernoulli",
    "BetaRewards",
    "Family",
    "Gaussian",
    "Prior",
    "Table",
    "TruncatedGaussian",
    "check_prior",
    "prior",
    "truncated_gaussian_family",
]
