"""An advice in words and cells: what people read."""

from __future__ import annotations

from ..engine.results import EXACT, NORMAL_95, floor_name
from .result import FORMULA, LEARNED, Advice


def _percent(share: float) -> str:
    return f"{100.0 * abs(share):.1f} %"


def summary(advice: Advice) -> str:
    """What to use and why; then whether that holds if the prior is wrong."""
    return f"{_first(advice)} {_if_wrong(advice)}".rstrip()


def _first(advice: Advice) -> str:
    chosen, classic = advice.choice, advice.classic
    result, base = advice.comparison[chosen], advice.comparison[classic]
    name, rival = advice.name(chosen), advice.name(classic)
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
    readable = f"and the best readable formula, {advice.name(formula)},"
    apart = advice.comparison.difference(formula, learned)
    share = apart.mean / float(advice.comparison[formula].mean_regret or 1.0)
    if chosen != formula and not apart.significant:
        why = f"{readable} is not better than {rival} by more than noise"
    elif chosen != formula:
        why = f"{readable} has {_percent(1.0 / (1.0 - share) - 1.0)} more"
    elif not apart.significant:
        why = "and the learned policy is not better by more than noise"
    elif share > 0.0:
        why = (
            f"and the learned policy, weights instead of a formula, has only {_percent(share)} less"
        )
    else:
        why = f"and the learned policy has {_percent(share)} more"
    return f"{text}, {why}."


def _if_wrong(advice: Advice) -> str:
    """How the recommended policy fares against the classic on neighbouring problems."""
    rival = advice.name(advice.classic)
    found = {item.label: item.gain(advice.choice, advice.classic) for item in advice.scenarios}
    gains = {label: over for label, over in found.items() if over is not None}
    if not gains:
        return ""
    ordered = sorted(gains.items(), key=lambda item: item[1].share)
    for label, over in ordered:
        if over.significant and over.share < 0.0:
            more = _percent(over.share)
            return f"But be sure of the prior: with {label} it has {more} more regret than {rival}."
    unsure = [label for label, over in gains.items() if not over.significant]
    if unsure:
        return (
            f"If the prior is wrong it is nowhere worse than {rival} by more than noise, but not better "
            f"either with {unsure[0]}."
        )
    return (
        f"If the prior is wrong it still has {_percent(ordered[0][1].share)} less regret than {rival}, or "
        f"better, in all {len(gains)} neighbouring cases."
    )


def ranking_rows(advice: Advice, reward: str) -> list[dict[str, str]]:
    """One row per candidate, least regret first; `reward` is the title of its column."""
    comparison = advice.comparison
    rival = advice.name(advice.classic)
    rows = []
    for place in advice.ranking():
        result = comparison[place]
        over = advice.gain(place)
        low, high = result.interval
        itself = place == advice.classic
        rows.append(
            {
                "policy": advice.name(place),
                "kind": advice.candidates[place].role,
                reward: f"{advice.reward(place):.6g}",
                "regret": f"{result.mean_regret:.4f}",
                "95 % interval": "exact"
                if comparison.method == EXACT
                else f"{low:.4f} to {high:.4f}",
                f"less regret than {rival}": "" if itself else str(over),
                "in plays": "" if itself or over.plays is None else f"{over.plays:+.1f}",
            }
        )
    if comparison.floor is not None:
        error = comparison.floor.standard_error
        last = {
            "policy": floor_name(comparison.floor.kind),
            "kind": "floor",
            reward: f"{advice.best_reward - comparison.floor.regret:.6g}",
            "regret": f"{comparison.floor.regret:.4f}",
            "95 % interval": f"± {NORMAL_95 * error:.2g}" if error else "exact",
        }
        rows.append({title: last.get(title, "") for title in rows[0]})
    return rows


def scenario_rows(advice: Advice) -> list[dict[str, str]]:
    """One row per neighbour: the regret of the policies that matter, and the gain of the recommended one."""
    places = list(dict.fromkeys(place for item in advice.scenarios for place in item.places))
    roles = {place: advice.candidates[place].role for place in places}
    titles = {
        place: role if role in (FORMULA, LEARNED) else advice.name(place)
        for place, role in roles.items()
    }
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
