"""The option that a message is about: the library says "the horizon", a person typed `--horizon`.

An option is put before a message if it was given, the message does not name it, and the message opens with
the words by which the library calls what the option sets.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

# Regular expressions for the openings of messages, by option.
_OPENINGS = {
    "--at": "a success rate must",
    "--batch": "the plays of a batch|the growth of|a batch (of|is)|batch|the batches|unknown batch",
    "--boundary": "unknown boundary|the p-values of|a boundary",
    "--classes": "the class file",
    "--cluster": "the address of a scheduler",
    "--constants": "a constant of the grammar|the constants",
    "--delay": "a delay|delays|the mean of a delay",
    "--dialect": "no SQL dialect|dialect is for",
    "--effort": "the effort (?!of a lower bound)|a search with an effort",
    "--episodes": "the number of episodes",
    "--expire": "expire",
    "--fewer-than": r"the number of patients \(fewer than\)",
    "--floor-effort": "the effort of a lower bound",
    "--format": "a picture is one of",
    "--generations": "the number of generations",
    "--grid": "a grid|the steps of a grid|a number of the grid",
    "--groups": "the number of groups",
    "--horizon": "the horizon",
    "--imbalance": "the imbalance",
    "--initial": "the space .* has no parameter",
    "--least": "least is|least must",
    "--length": "the length of formulas",
    "--level": "the level of a test",
    "--look-every": "the patients between looks",
    "--max-body": "the largest body",
    "--method": "unknown method|exact evaluation",
    "--min-share": r"\d+ arms cannot each keep a share|the minimum share",
    "--minimum": "the minimum per arm",
    "--objective": "unknown objective|the objective|. of the objective|the penalty of the objective",
    "--operators": "unknown operator",
    "--optimizer": "unknown optimizer|the optimizer",
    "--pending": "unknown choice .* for pending",
    "--plot": "the picture",
    "--port": "the port",
    "--prior": "unknown prior|the prior",
    "--protocol": "unknown protocol|the protocol",
    "--pulls": "the number of pulls",
    "--reference": "a reference",
    "--refine": "the number of formulas to refine",
    "--runs": "the number of runs",
    "--scale": "unknown scale",
    "--seed": "the seed",
    "--shares": "shares|the share of|the log has no arm",
    "--show": "a table shows",
    "--space": "unknown space|the space",
    "--start": "unknown start|the start|(plays|squares|the sum) of the start",
    "--strategy": "unknown strategy|the strategy",
    "--test": "unknown test|the test",
    "--threads": "the number of threads",
    "--time-limit": "a time limit|the time limit",
    "--to": "no export to",
    "--today": "unknown policy",
    "--tolerance": "the tolerance",
    "--top": "the number of formulas to rank",
    "--unit": "the unit",
    "--v1": "v1 of",
    "--v4": "v4 of",
    "--value": "the value of",
    "--variables": "unknown variable",
    "--workers": "the number of workers",
}


def with_option(message: str, arguments: Sequence[str]) -> str:
    """Return a message with the option that it is about in front, if that was among the arguments."""
    given = {argument.partition("=")[0] for argument in arguments}
    for option, openings in _OPENINGS.items():
        if option in given and option not in message and re.match(openings, message):
            return f"{option}: {message}"
    return message
