"""An advice in words and cells: what people read."""

from __future__ import annotations

import math

import numpy as np

from .measuring import Gain
from .result import BASELINE, CLASSIC, Advice, Advised


def amount(value: float, half: float = 0.0) -> str:
    """A number with the digits that its noise leaves: one of the noise, else four of the number."""
    size = half if 0.0 < half < math.inf else abs(value) / 1000.0
    digits = 2 if size == 0.0 else max(0, -math.floor(math.log10(size)))
    return f"{value:,.{min(digits, 6)}f}"


def signed(gain: Gain) -> str:
    """A gain with its sign."""
    shown = amount(gain.mean, (gain.high - gain.low) / 2.0)
    return shown if shown.startswith("-") else f"+{shown}"


def ends(gain: Gain) -> str:
    """The 95 % interval of a gain; nothing if it is exact."""
    half = (gain.high - gain.low) / 2.0
    if half == 0.0:
        return ""
    if not math.isfinite(half):
        return "not known"
    return f"{amount(gain.low, half)} to {amount(gain.high, half)}"


def called(policy: Advised) -> str:
    """What a sentence calls a policy."""
    return "an equal split" if policy.name == "split" else policy.name


def percent(share: float) -> str:
    """A share as people read it."""
    shown = 100.0 * share
    return f"{shown:.0f} %" if shown >= 9.95 else f"{shown:.2g} %" if shown else "0 %"


def worth(advice: Advice, rewards: float) -> str:
    """What rewards are worth, if that is known."""
    return "" if advice.value is None else f"{advice.value * rewards:+,.2f}"


def summary(advice: Advice) -> list[str]:
    """What to use and what it brings; how sure that is; and what to be careful about, if there is something."""
    return [_answer(advice), _risk(advice), *_cautions(advice)]


def _answer(advice: Advice) -> str:
    best, today = advice.recommended, advice.today
    brings = f"it brings {amount(best.expected_reward)} {advice.unit} per test of {advice.horizon:,} plays"
    if best is today:
        return f"Keep {called(today)}: {brings}, and nothing else that was measured brings more by more than noise."
    between = f" (95 %: {ends(best.gain)})" if ends(best.gain) else ""
    money = "" if advice.value is None else f", worth {worth(advice, best.gain.mean)}"
    text = f"Use {best.name}: {brings}, {signed(best.gain)}{between}{money} against {called(today)}"
    if today.name != "split" and best.name != "split":
        text += f" and {signed(best.over_split)} against an equal split"
    return f"{text}."


def _risk(advice: Advice) -> str:
    best, today = advice.recommended, advice.today
    parts = []
    if best is not today and best.risk is not None:
        parts.append(
            f"on a single test it brings less than {called(today)} with a chance of {percent(best.risk)}"
        )
    if (below := advice.below_best) is not None:
        parts.append(f"it is at most {percent(below)} below the best possible")
    text = ", and ".join(parts)
    return f"{text[:1].upper()}{text[1:]}." if text else ""


def _cautions(advice: Advice) -> list[str]:
    """Whether the gain lasts if the prior is wrong, and if history is noisy."""
    best, today = advice.recommended, advice.today
    if best is today:
        return []
    found = []
    gains = {item.label: item.gains[best.name] for item in advice.scenarios}
    if gains:
        label, worst = min(gains.items(), key=lambda item: item[1].mean)
        lost = [label for label, gain in gains.items() if gain.high < 0.0]
        if lost:
            found.append(
                f"Be sure of the prior: with {label} it brings {signed(worst)} against {called(today)}."
            )
        else:
            found.append(
                f"If the prior is wrong it still brings {signed(worst)} or more against {called(today)} in "
                f"the {len(gains)} cases that were tried."
            )
    if advice.histories:
        values = sorted(item.gains[best.name].mean for item in advice.histories)
        low, high = np.quantile(values, [0.05, 0.95])
        half = (high - low) / 2.0
        first = sum(item.best == best.name for item in advice.histories)
        found.append(
            f"Had the history been another one (resampled {len(values)} times), the gain would be "
            f"{amount(low, half)} to {amount(high, half)}, and it would be the best of "
            f"{len(advice.histories[0].gains)} policies {first} times."
        )
    return found


def ranking_rows(advice: Advice, *, regret: bool = False) -> list[dict[str, str]]:
    """One row per policy, the best first; the best possible is last."""
    today = called(advice.today)
    rows = []
    for item in advice.policies:
        itself = item is advice.today
        mark = " (advised)" if item is advice.recommended else " (today)" if itself else ""
        row = {
            "policy": f"{item.name}{mark}",
            "kind": item.kind,
            f"{advice.unit} per test": amount(
                item.expected_reward, (item.regret.high - item.regret.low) / 2.0
            ),
            f"gain over {today}": "" if itself else signed(item.gain),
            "95 % interval": "" if itself else ends(item.gain) or "exact",
        }
        if advice.value is not None:
            row["worth"] = "" if itself else worth(advice, item.gain.mean)
        row["chance of less"] = "" if itself or item.risk is None else percent(item.risk)
        if regret:
            row["regret"] = f"{item.regret.mean:.4f}"
            row["95 % interval of regret"] = _regret_ends(item)
        rows.append(row)
    last = {"policy": "best possible", f"{advice.unit} per test": amount(advice.best_possible)}
    if advice.floor_kind != "optimum":
        last["policy"] = "no policy brings more than"
    if regret and advice.floor is not None:
        last["regret"] = f"{advice.floor:.4f}"
    rows.append({title: last.get(title, "") for title in rows[0]})
    return rows


def _regret_ends(item: Advised) -> str:
    low, high = item.regret.low, item.regret.high
    return f"{low:.4f} to {high:.4f}" if high > low else "exact"


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
    half = (gain.high - gain.low) / 2.0
    return f"{signed(gain)} ± {amount(half, half)}" if half else signed(gain)
