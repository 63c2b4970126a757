"""An advice in words and cells: what people read."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from ..feedback import Feedback
from ..language import VARIABLES, variables
from ..policies import CATALOGUE, IndexPolicy
from .measuring import BASELINE, CLASSIC, LEARNED, Gain

if TYPE_CHECKING:
    from .result import Advice

# Fewer resampled histories say nothing about how far the gain may be off.
_FEWEST_HISTORIES = 10


def amount(value: float, half: float = 0.0) -> str:
    """A number with the digits that its noise leaves: one of the noise, else four of the number."""
    if not math.isfinite(value):
        return "not known"
    size = half if 0.0 < half < math.inf else abs(value) / 1000.0
    digits = 2 if size == 0.0 else max(0, -math.floor(math.log10(size)))
    return f"{value:,.{min(digits, 6)}f}"


def signed(gain: Gain) -> str:
    """A gain with its sign."""
    shown = amount(gain.mean, gain.half)
    return shown if shown.startswith("-") else f"+{shown}"


def ends(gain: Gain) -> str:
    """The 95 % interval of a gain; nothing if it is exact."""
    if gain.half == 0.0:
        return ""
    if not math.isfinite(gain.half):
        return "not known"
    return f"{amount(gain.low, gain.half)} to {amount(gain.high, gain.half)}"


def rival(advice: Advice, *, again: bool = False) -> str:
    """What a sentence calls today's policy, the first time and again."""
    if advice.today.name == "split":
        return "an equal split"
    return "what you do today" if again else f"what you do today ({advice.today.name})"


def percent(share: float) -> str:
    """A share as people read it."""
    shown = 100.0 * share
    return f"{shown:.0f} %" if shown >= 9.95 else f"{shown:.2g} %" if shown else "0 %"


def worth(advice: Advice, rewards: float) -> str:
    """What rewards are worth, if that is known."""
    return "" if advice.value is None else f"{advice.value * rewards:+,.2f}"


def summary(advice: Advice) -> list[str]:
    """What to use and what it brings; how sure that is; and what to be careful about, if there is something."""
    doubts = [f"Careful: {item[:1].lower()}{item[1:]}." for item in advice.doubts]
    return [_answer(advice), _risk(advice), *doubts, *_cautions(advice)]


def _answer(advice: Advice) -> str:
    best, today = advice.recommended, advice.today
    per_test = f"{advice.unit} per test of {advice.horizon:,} plays"
    if best is today:
        return (
            f"Keep {rival(advice)}: it brings {amount(best.expected_reward)} {per_test}, and nothing else that "
            f"was measured brings more by more than noise."
        )
    between = f" (95 %: {ends(best.gain)})" if ends(best.gain) else ""
    money = "" if advice.value is None else f", worth {worth(advice, best.gain.mean)}"
    text = (
        f"Use {best.name}: it brings {amount(best.expected_reward)} {per_test}, "
        f"{signed(best.gain)}{between} against {rival(advice)}{money}"
    )
    if today.name != "split" and best.name != "split":
        text += f", and {signed(best.over_split)} against an equal split"
    return f"{text}."


def _risk(advice: Advice) -> str:
    best = advice.recommended
    parts = []
    if best is not advice.today and best.risk is not None:
        parts.append(
            f"on a single test it brings less than {rival(advice, again=True)} with a chance of "
            f"{percent(best.risk)}"
        )
    if (below := advice.below_best) is not None:
        parts.append(f"it is at most {percent(below)} below the best possible")
    text = ", and ".join(parts)
    return f"{text[:1].upper()}{text[1:]}." if text else ""


def explanation(advice: Advice) -> str:
    """How the recommended policy chooses."""
    item = advice.recommended
    if item.kind == LEARNED:
        return "It plays the arm with the largest index, a sum of features with learned weights."
    if isinstance(item.policy, IndexPolicy) and len(item.policy.trees) == 1:
        read = variables(item.policy.tree)
        meaning = "; ".join(f"{name}: {VARIABLES[name]}" for name in VARIABLES if name in read)
        return f"It always plays the arm with the largest {item.text} ({meaning}).{_beginning(item.policy)}"
    known = CATALOGUE.get(item.name.partition(":")[0])
    return "" if known is None else f"It plays {known.description}."


def _beginning(policy: IndexPolicy) -> str:
    """What an arm counts before its first play."""
    start = policy.start
    if not isinstance(start.plays, float) or not isinstance(start.reward_sum, float):
        return "" if start.each_once else f" It begins with {start}."
    return (
        f" Before the first play, n and r of every arm are those of {start.plays:g} plays with rewards of "
        f"{start.reward_sum:g} in all."
    )


def _cautions(advice: Advice) -> list[str]:
    """Whether the gain lasts if the prior is wrong, and if history is noisy."""
    best = advice.recommended
    if best is advice.today:
        return []
    found = []
    gains = {item.label: item.gains[best.name] for item in advice.scenarios}
    if gains:
        label, worst = min(gains.items(), key=lambda item: item[1].mean)
        if any(gain.high < 0.0 for gain in gains.values()):
            found.append(
                f"Be sure of the prior: with {label} it brings {signed(worst)} against {rival(advice, again=True)}."
            )
        else:
            found.append(
                f"If the prior is wrong it still brings {signed(worst)} or more against {rival(advice, again=True)} in "
                f"the {len(gains)} cases that were tried."
            )
    if len(advice.histories) >= _FEWEST_HISTORIES:
        values = sorted(item.gains[best.name].mean for item in advice.histories)
        low, high = np.quantile(values, [0.05, 0.95])
        half = (high - low) / 2.0
        first = sum(item.best == best.name for item in advice.histories)
        found.append(
            f"With another history ({len(values)} resampled ones were tried), the gain would be "
            f"{amount(low, half)} to {amount(high, half)}, and it would be the best of "
            f"{len(advice.histories[0].gains)} policies {first} times."
        )
    return found


def assumptions(advice: Advice) -> list[str]:
    """What the figures rest on."""
    low, high, mean = (f"{value:.3g}" for value in advice.means)
    fitted = f", fitted to {advice.source}" if advice.source else ""
    known = "at once" if advice.feedback == Feedback() else f"late: {advice.feedback}"
    most = max(item.episodes for item in advice.policies)
    how = f"simulated on up to {most:,} tests that no search has seen" if most else "exact"
    found = [
        f"A test has {advice.arms} arms. A play of an arm brings {mean} {advice.unit} on average; nine arms in "
        f"ten bring between {low} and {high} (the prior {advice.prior}{fitted}).",
        f"A test has {advice.horizon:,} plays, and rewards are known {known}.",
        f"Gains are counted from {rival(advice)}.",
        f"Figures are {how}, with the same luck for all policies; ranges are 95 % intervals.",
    ]
    if advice.value is not None:
        found.append(f"Each of the {advice.unit} is worth {advice.value:g}.")
    if advice.floor_kind != "optimum":
        least = (
            "a bound that no policy can exceed" if advice.floor else "always playing the best arm"
        )
        found.append(f"The best possible is not known exactly; here it stands for {least}.")
    return found


def ranking_rows(advice: Advice, *, regret: bool = False) -> list[dict[str, str]]:
    """One row per policy, the best first; the best possible is last."""
    today = advice.today.name
    rows = []
    for item in advice.policies:
        itself = item is advice.today
        mark = " (advised)" if item is advice.recommended else " (today)" if itself else ""
        row = {
            "policy": f"{item.name}{mark}",
            "kind": item.kind,
            f"{advice.unit} per test": amount(item.expected_reward, item.regret.half),
            f"gain over {today}": "" if itself else signed(item.gain),
            "95 % interval": "" if itself else ends(item.gain) or "exact",
        }
        if advice.value is not None:
            row["worth"] = "" if itself else worth(advice, item.gain.mean)
        row["chance of less"] = "" if itself or item.risk is None else percent(item.risk)
        if regret:
            row["regret"] = f"{item.regret.mean:.4f}"
            row["95 % interval of regret"] = (
                f"{item.regret.low:.4f} to {item.regret.high:.4f}" if item.regret.half else "exact"
            )
        rows.append(row)
    last = {"policy": "best possible", f"{advice.unit} per test": amount(advice.best_possible)}
    if advice.floor_kind != "optimum":
        last["policy"] = "no policy brings more than"
    if regret and advice.floor is not None:
        last["regret"] = f"{advice.floor:.4f}"
    rows.append({title: last.get(title, "") for title in rows[0]})
    return rows


def scenario_rows(advice: Advice) -> list[dict[str, str]]:
    """One row per neighbour: what the policies that matter gain there."""
    names = list(dict.fromkeys(name for item in advice.scenarios for name in item.gains))
    kinds = {item.name: item.kind for item in advice.policies}
    titles = {
        name: name if kinds[name] in (CLASSIC, BASELINE) else kinds[name]
        for name in names
        if name != advice.today.name
    }
    return [
        {
            "what differs": item.label,
            **{
                title: _with_noise(item.gains[name]) if name in item.gains else "-"
                for name, title in titles.items()
            },
        }
        for item in advice.scenarios
    ]


def _with_noise(gain: Gain) -> str:
    noise = f" ± {amount(gain.half, gain.half)}" if gain.half else ""
    return f"{signed(gain)}{noise}"
