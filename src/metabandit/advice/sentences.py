"""An advice in words and cells: what people read."""

from __future__ import annotations

from ..engine.results import EXACT
from .result import FORMULA, LEARNED, Advice, Gain


def _percent(share: float) -> str:
    return f"{100.0 * abs(share):.1f} %"


def summary(advice: Advice) -> str:
    """What to use and why; then whether that holds if the prior is wrong."""
    return " ".join([_first(advice), *_if_wrong(advice)])


def _first(advice: Advice) -> str:
    chosen, classic = advice.choice, advice.classic
    result, base = advice.comparison[chosen], advice.comparison[classic]
    name, rival = (advice.candidates[place].policy.name for place in (chosen, classic))
    plays = advice.comparison.horizon
    roles = [item.role for item in advice.candidates]
    formula, learned = roles.index(FORMULA), roles.index(LEARNED)
    if chosen == classic:
        return (
            f"Use {name}: neither the formula nor the learned policy that were found for these problems has "
            f"less regret by more than noise ({result.mean_regret:.4g} after {plays} plays)."
        )
    text = (
        f"Use {name}: its regret after {plays} plays is {result.mean_regret:.4g}, "
        f"{_percent(advice.gain(chosen).share)} less than the {base.mean_regret:.4g} of {rival}, the best "
        f"untuned classic"
    )
    apart = advice.comparison.difference(formula, learned)
    share = apart.mean / float(advice.comparison[formula].mean_regret or 1.0)
    if chosen != formula and not apart.significant:
        why = (
            f"and the best readable formula, {advice.candidates[formula].policy.name}, is not better than "
            f"{rival} by more than noise"
        )
    elif chosen != formula:
        more = _percent(1.0 / (1.0 - share) - 1.0)
        why = f"and the best readable formula, {advice.candidates[formula].policy.name}, has {more} more"
    elif not apart.significant:
        why = "and the learned policy is not better by more than noise"
    elif share > 0.0:
        why = (
            f"and the learned policy, weights instead of a formula, has only {_percent(share)} less"
        )
    else:
        why = f"and the learned policy has {_percent(share)} more"
    return f"{text}, {why}."


def _if_wrong(advice: Advice) -> list[str]:
    """How the recommended policy fares against the classic on neighbouring problems."""
    rival = advice.candidates[advice.classic].policy.name
    gains: list[tuple[str, Gain]] = []
    for item in advice.scenarios:
        over = item.gain(advice.choice, advice.classic)
        if over is not None:
            gains.append((item.label, over))
    if not gains:
        return []
    worse = [(label, over) for label, over in gains if over.significant and over.share < 0.0]
    if worse:
        label, over = min(worse, key=lambda item: item[1].share)
        return [
            f"But be sure of the prior: with {label} it has {_percent(over.share)} more regret than {rival}."
        ]
    unsure = [label for label, over in gains if not over.significant]
    if unsure:
        return [
            f"If the prior is wrong it is nowhere worse than {rival} by more than noise, but not better "
            f"either with {unsure[0]}."
        ]
    least = min(over.share for _, over in gains)
    return [
        f"If the prior is wrong it still has {_percent(least)} less regret than {rival}, or better, in all "
        f"{len(gains)} neighbouring cases."
    ]


def ranking_rows(advice: Advice) -> list[dict[str, str]]:
    """One row a candidate, least regret first."""
    comparison = advice.comparison
    rival = advice.candidates[advice.classic].policy.name
    rows = []
    for place in advice.ranking():
        result = comparison[place]
        over = advice.gain(place)
        low, high = result.interval
        itself = place == advice.classic
        rows.append(
            {
                "policy": advice.candidates[place].policy.name,
                "kind": advice.candidates[place].role,
                "reward": f"{advice.reward(place):.6g}",
                "regret": f"{result.mean_regret:.4f}",
                "95 % interval": "exact"
                if comparison.method == EXACT
                else f"{low:.4f} to {high:.4f}",
                f"less regret than {rival}": "" if itself else str(over),
                "in plays": "" if itself or over.plays is None else f"{over.plays:+.1f}",
            }
        )
    if comparison.floor is not None:
        last = {
            "policy": "Bayes-optimal",
            "kind": "floor",
            "reward": f"{advice.best_reward - comparison.floor.regret:.6g}",
            "regret": f"{comparison.floor.regret:.4f}",
            "95 % interval": "exact",
        }
        rows.append({title: last.get(title, "") for title in rows[0]})
    return rows


def scenario_rows(advice: Advice) -> list[dict[str, str]]:
    """One row a neighbour: the regret of the policies that matter, and the gain of the recommended one."""
    places = list(dict.fromkeys(place for item in advice.scenarios for place in item.places))
    titles = {}
    for place in places:
        candidate = advice.candidates[place]
        searched = candidate.role in (FORMULA, LEARNED)
        titles[place] = candidate.role if searched else candidate.policy.name
    rows = []
    for item in advice.scenarios:
        row = {"what differs": item.label}
        for place in places:
            found = item.regret(place)
            row[titles[place]] = "-" if found is None else f"{found.mean_regret:.4f}"
        if advice.choice != advice.classic:
            over = item.gain(advice.choice, advice.classic)
            title = f"{titles[advice.choice]}: less than {titles[advice.classic]}"
            row[title] = "-" if over is None else str(over)
        rows.append(row)
    return rows
