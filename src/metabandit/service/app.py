"""The service: what can be asked, and how it is answered.

Every request but those for pages, /health and the docs bears the token, if there is one. Errors are
{"error": reason} with a status of 4xx for what was asked wrongly and 503 for a store that does not answer;
what is refused changes nothing.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import asdict, fields
from importlib.resources import files
from typing import Any, TypeVar

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from ..errors import InputError, StoreError
from ..play.experiment import Experiment
from ..play.players import begin_experiment, open_experiment
from ..play.store import Store
from ..policies import Policy, policy
from ..policies.file import policy_of
from . import bodies
from .bodies import Operation, describe
from .guard import Guard
from .served import Served

T = TypeVar("T")

# Experiments that a process keeps at hand.
_MOST_EXPERIMENTS = 1_000


_ONE = "/experiments/{name}"
_STATE = {"experiment": "string", "policy": "string", "rewarded": "integer", "arms": "array"}
OPERATIONS = (
    Operation("GET", "/", "show_page", "The page that lists the experiments."),
    Operation("GET", "/health", "health", "Whether the store answers.", None, {"status": "string"}),
    Operation("GET", "/openapi.json", "show_docs", "This description.", None, {}),
    Operation(
        "GET", "/experiments", "list_all", "The experiments.", None, {"experiments": "array"}
    ),
    Operation("GET", _ONE, "show_page", "The page that shows an experiment live."),
    Operation("PUT", _ONE, "put", "Begin an experiment.", bodies.New, _STATE),
    Operation(
        "GET", f"{_ONE}/state", "state", "Counts, means, what comes next, settings.", None, _STATE
    ),
    Operation(
        "GET", f"{_ONE}/indices", "indices", "The index and next probability of each arm.",
        None, {"arms": "array"},
    ),
    Operation(
        "GET", f"{_ONE}/history", "history", "How often each arm was chosen, over time.",
        None, {"begin": "number", "end": "number", "parts": "integer", "arms": "array"},
    ),
    Operation(
        "POST", f"{_ONE}/choose", "choose",
        "The arm to play, with an id for its reward; many, as `choices`, with count.",
        bodies.Choose, {"arm": "string", "id": "string", "probability": "number", "time": "number"},
    ),
    Operation(
        "POST", f"{_ONE}/reward", "reward",
        "Count the reward of a choice once, however often it is told.",
        bodies.Reward, {"counted": "boolean"},
    ),
    Operation(
        "POST", f"{_ONE}/rewards", "rewards", "Count the rewards of many choices, all or none.",
        bodies.RewardMany, {"counted": "integer"},
    ),
    Operation(
        "POST", f"{_ONE}/batch", "batch", "How often to play each arm in a batch.",
        bodies.Batch, {"arms": "array"},
    ),
    Operation(
        "POST", f"{_ONE}/counts", "counts", "Count rewards by their number and sum, all or none.",
        bodies.CountMany, {"counted": "integer"},
    ),
)  # fmt: skip


def answer(value: Any, status: int = 200) -> Response:
    """A JSON value."""
    content = json.dumps(value, allow_nan=False, separators=(",", ":"))
    return Response(content, status, {"Cache-Control": "no-store"}, "application/json")


def refuse(status: int, reason: str) -> Response:
    """Why something was not done."""
    found = answer({"error": reason}, status)
    if status == 401:
        found.headers["WWW-Authenticate"] = "Bearer"
    if status == 503:
        found.headers["Retry-After"] = "1"
    return found


def _page(name: str) -> Response:
    """A page, which loads nothing and runs nothing but what is in it."""
    text = files(__package__).joinpath(name).read_text("utf-8")

    def digest(tag: str) -> str:
        [inner] = re.findall(rf"<{tag}>(.*?)</{tag}>", text, re.S)
        return base64.b64encode(hashlib.sha256(inner.encode()).digest()).decode()

    policy = (
        f"default-src 'none'; script-src 'sha256-{digest('script')}'; "
        f"style-src 'sha256-{digest('style')}'; connect-src 'self'; img-src data:; "
        f"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )
    headers = {
        "Content-Security-Policy": policy,
        "X-Content-Type-Options": "nosniff",
        "Referrer-Policy": "no-referrer",
    }
    return Response(text, headers=headers, media_type="text/html")


class Service:
    """Answers requests from the experiments of a store."""

    def __init__(self, store: Store, version: str) -> None:
        self.store = store
        self.version = version
        self.served: dict[str, Served] = {}
        self.page = _page("page.html")
        self.docs = answer(describe(OPERATIONS, version))

    # Experiments ---------------------------------------------------------------------------------

    def _open(self, name: str) -> Served:
        if name not in self.served:
            player = open_experiment(Experiment(self.store, name))
            if player is None:
                raise HTTPException(
                    404, f"there is no experiment {name!r}; PUT /experiments/NAME begins one"
                )
            if len(self.served) >= _MOST_EXPERIMENTS:
                first = next(iter(self.served))
                self.served.pop(first).player.close()
            self.served.setdefault(name, Served(player))
        return self.served[name]

    async def find(self, request: Request) -> Served:
        """The experiment that a request names."""
        name = request.path_params["name"]
        known = self.served.get(name)
        return known if known is not None else await run_in_threadpool(self._open, name)

    def begin(self, name: str, asked: bodies.New) -> bool:
        """Begin an experiment; False if it is there, and was begun like that."""
        if not name.isprintable():
            raise InputError(f"the name of an experiment has printable letters only, not {name!r}")
        made = self._policy(name, asked)
        options = {item.name: getattr(asked, item.name) for item in fields(asked)}
        del options["policy"]
        player = made.player(**options)
        found = Experiment(self.store, name)
        new = found.state() is None
        try:
            begin_experiment(player, found)
        except InputError as error:
            raise HTTPException(400 if new else 409, str(error)) from None
        return new

    @staticmethod
    def _policy(name: str, asked: bodies.New) -> Policy:
        if not isinstance(asked.policy, str):
            return policy_of(asked.policy, f"the policy of {name}")
        if asked.policy.strip().endswith((".json", ".npz")):
            raise InputError(
                f"the service reads no files, such as {asked.policy!r}; send the content of the policy "
                f"file instead of its name"
            )
        return policy(asked.policy)

    # Requests ------------------------------------------------------------------------------------

    async def health(self, request: Request) -> Response:
        await run_in_threadpool(self.store.check)
        return answer({"status": "ok", "version": self.version, "store": self.store.dialect})

    async def show_page(self, request: Request) -> Response:
        return self.page

    async def show_docs(self, request: Request) -> Response:
        return self.docs

    async def list_all(self, request: Request) -> Response:
        rows = await run_in_threadpool(self.store.overview)
        keys = ("experiment", "policy", "arms", "rewarded")
        return answer({"experiments": [dict(zip(keys, row, strict=True)) for row in rows]})

    async def put(self, request: Request) -> Response:
        asked = await _body(request, bodies.New)
        name = request.path_params["name"]
        new = await run_in_threadpool(self.begin, name, asked)
        served = await self.find(request)
        return answer(await run_in_threadpool(served.state), 201 if new else 200)

    async def state(self, request: Request) -> Response:
        return answer(await run_in_threadpool((await self.find(request)).state))

    async def indices(self, request: Request) -> Response:
        rows = await run_in_threadpool((await self.find(request)).indices)
        return answer({"arms": rows})

    async def history(self, request: Request) -> Response:
        return answer(await run_in_threadpool((await self.find(request)).history))

    async def choose(self, request: Request) -> Response:
        asked = await _body(request, bodies.Choose)
        served = await self.find(request)
        if asked.count is None:
            return answer(asdict(await served.choosing.call(None)))
        choices = await run_in_threadpool(served.player.choose, asked.count)
        return answer({"choices": [asdict(choice) for choice in choices]})

    async def reward(self, request: Request) -> Response:
        asked = await _body(request, bodies.Reward)
        served = await self.find(request)
        value = served.player.rewards.check(asked.value)
        counted = await served.rewarding.call((asked.id, value))
        if isinstance(counted, InputError):
            raise counted
        return answer({"counted": counted})

    async def rewards(self, request: Request) -> Response:
        asked = await _body(request, bodies.RewardMany)
        served = await self.find(request)
        pairs = [(item.id, item.value) for item in asked.rewards]
        return answer({"counted": await run_in_threadpool(served.player.reward_many, pairs)})

    async def batch(self, request: Request) -> Response:
        asked = await _body(request, bodies.Batch)
        served = await self.find(request)
        found = await run_in_threadpool(served.batch, asked.plays)
        return answer({"arms": [{"arm": arm, "plays": plays} for arm, plays in found.items()]})

    async def counts(self, request: Request) -> Response:
        asked = await _body(request, bodies.CountMany)
        served = await self.find(request)
        given = {item.arm: (item.plays, item.total, item.squares) for item in asked.counts}
        if len(given) < len(asked.counts):
            raise InputError("counts: an arm is there twice; nothing was counted")
        await run_in_threadpool(served.player.update_many, given)
        return answer({"counted": sum(item.plays for item in asked.counts)})

    def close(self) -> None:
        """Give back what the players have taken."""
        for served in self.served.values():
            with suppress(StoreError):
                served.player.close()


async def _body(request: Request, kind: type[T]) -> T:
    return bodies.read_body(kind, await request.body())


def make_app(store: Store, *, version: str, token: str | None, most_bytes: int) -> Starlette:
    """The service as an ASGI application; `version` is what it says that it is."""
    service = Service(store, version)

    async def asked_wrongly(request: Request, error: Exception) -> Response:
        return refuse(400, str(error))

    async def out_of_reach(request: Request, error: Exception) -> Response:
        return refuse(503, str(error))

    async def other(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        return refuse(error.status_code, error.detail)

    @asynccontextmanager
    async def life(_: Starlette) -> AsyncIterator[None]:
        yield
        await run_in_threadpool(service.close)

    return Starlette(
        routes=[
            Route(item.path, getattr(service, item.handler), methods=[item.method])
            for item in OPERATIONS
        ],
        middleware=[Middleware(Guard, token=token, most=most_bytes, refuse=refuse)],
        exception_handlers={
            InputError: asked_wrongly,
            StoreError: out_of_reach,
            HTTPException: other,
        },
        lifespan=life,
    )
