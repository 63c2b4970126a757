"""The slow obvious version of everything that the kernels do, in float64 or in fractions.

It follows the definitions, not the kernels' layout: no lanes, no masks, no float32. The random
numbers are the same functions of (seed, episode, arm, pull), so that play can be compared move by
move.
"""

from tests.naive.bounds import best_share, charge_bound, lagrangian_bound
from tests.naive.choices import choice_of
from tests.naive.coarse import play_coarsely
from tests.naive.episodes import play_episode, quantile
from tests.naive.exact import (
    best_of,
    beta_chance,
    by_shares,
    decision_shares,
    epsilon_greedy_shares,
    expected_reward,
    index_shares,
    optimal_slices,
    shares_of,
    simple_regret,
    thompson_shares,
    ucb1_normal_shares,
    uniform_shares,
)
from tests.naive.formulas import all_formulas, choices, ranks, sampled_values, ucb1_tuned_pulls
from tests.naive.gittins import gaussian_bonus, gittins_index
from tests.naive.lanes import play_lanes
from tests.naive.language import value
from tests.naive.learning import eda, expected_gap_regret
from tests.naive.lookahead import (
    ada_ucb_choice,
    best_arms,
    ids_shares,
    knowledge_choice,
    shares_choice,
    ttts_shares,
    whittle_choice,
)
from tests.naive.policies import (
    TIE,
    ab_test_choice,
    decision_choice,
    epsilon_greedy_choice,
    gaussian_gittins_choice,
    gittins_choice,
    index_choice,
    optimal_choice,
    thompson_beta_choice,
    thompson_gaussian_choice,
    ucb1_normal_choice,
    ucb2_choice,
    uniform_choice,
)
from tests.naive.randomness import MASK32, WEYL, draw_bits, episode_word, noise_bits, unit
