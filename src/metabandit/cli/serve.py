"""`metabandit serve`: the experiments of a store over HTTP."""

from __future__ import annotations

import os
import socket
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Option

from ..errors import InputError, about
from .display import say

if TYPE_CHECKING:
    from ..play.store import Store


def command(
    store: Annotated[
        str,
        Option(
            help="The database, as in sqlite:///bandit.db or postgresql+psycopg://user@host/db; "
            "`metabandit store init` makes its tables.",
            show_default=False,
        ),
    ],
    experiment: Annotated[
        str | None, "The experiment to begin, unless it exists; needs --policy and --arms."
    ] = None,
    policy: Annotated[str | None, "Its policy: a file, a name or an expression."] = None,
    arms: Annotated[str | None, "Its arms, separated by commas."] = None,
    horizon: Annotated[int | None, "Its plays in all, for policies that use it."] = None,
    prior: Annotated[str | None, "Its prior, for policies that use it."] = None,
    min_share: Annotated[
        float | None, "The least probability of each of its arms at every choice."
    ] = None,
    expire: Annotated[float | None, "Seconds that its choices wait for their reward."] = None,
    seed: Annotated[int, "Its seed, for ties and random plays."] = 0,
    host: Annotated[str, "The address to listen on."] = "127.0.0.1",
    port: Annotated[int, "The port to listen on; 0 takes a free one."] = 8000,
    token_file: Annotated[
        Path | None,
        "A file with the token that clients must send, or set METABANDIT_TOKEN. Not needed on 127.0.0.1.",
    ] = None,
    max_body: Annotated[int, "The largest allowed request body, in bytes."] = 1_000_000,
) -> None:
    """Serve the experiments of a store over HTTP, with a page that shows them live."""
    # Long because its options are its signature; the body is short.
    from .. import __version__
    from ..files import read_text
    from ..play.store import Store
    from ..settings import check_whole

    try:
        import uvicorn

        from ..service import make_app
        from ..service.guard import check_token
    except ImportError:
        raise InputError(
            "serving needs Starlette and uvicorn: install them with pip install 'metabandit[serve]'"
        ) from None
    found = Store(store)
    found.check()
    given = os.environ.get("METABANDIT_TOKEN") if token_file is None else read_text(token_file)
    token = check_token(given, host)
    with about("port"):
        check_whole(port, "the port", 0, most=65535)
    with about("max_body"):
        check_whole(max_body, "the largest body", 1000, most=10**9)
    if experiment is not None:
        if policy is None or arms is None:
            raise InputError("--experiment begins an experiment: give its --policy and --arms, too")
        _begin(
            found, experiment, policy, arms,
            seed=seed, horizon=horizon, prior=prior, min_share=min_share, expire=expire,
        )  # fmt: skip
    elif policy is not None or arms is not None:
        raise InputError("--policy and --arms are those of an experiment: give --experiment, too")
    app = make_app(found, version=__version__, token=token, most_bytes=max_body)
    config = uvicorn.Config(
        app, host=host, port=port, log_level="warning", access_log=False, limit_concurrency=1000,
        server_header=False, timeout_keep_alive=30,
    )  # fmt: skip
    listening = _listen(host, port)
    name = f"[{host}]" if ":" in host else host
    who = "for bearers of the token" if token else "without a token"
    say(
        f"serving {found.name} at http://{name}:{listening.getsockname()[1]}/ ({who}); Ctrl-C ends it"
    )
    uvicorn.Server(config).run(sockets=[listening])


def _begin(store: Store, name: str, policy: str, arms: str, **settings: Any) -> None:
    """Begin an experiment, unless the store has it; `settings` are those of its player."""
    from ..play.experiment import Experiment
    from ..play.players import begin_experiment
    from ..policies import policy as read_policy

    with about("policy"):
        chosen = read_policy(policy)
    with warnings.catch_warnings(record=True) as notes:
        warnings.simplefilter("always")
        player = chosen.player([arm.strip() for arm in arms.split(",")], **settings)
    for note in notes:
        say(f"note: {note.message}")
    begin_experiment(player, Experiment(store, name))


def _listen(host: str, port: int) -> socket.socket:
    """A socket that clients can connect to."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # With its protocol named: asyncio sends answers at once (TCP_NODELAY) only where it knows that.
    found = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        found.bind((host, port))
        found.listen(2048)
    except OSError as error:
        found.close()
        raise InputError(
            f"{host}, port {port}, cannot be listened on: {error.strerror or error}; choose another --host "
            f"or --port"
        ) from None
    return found
