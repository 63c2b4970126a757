"""The service, asked by real clients: what it answers, what it refuses, and that refusals change nothing."""

import asyncio
import socket
import subprocess
import sys
import threading

import httpx
import pytest
from benchmarks.service import TOKEN, load

import metabandit as mb
from metabandit.data import write_data
from metabandit.policies.file import PolicyFile
from metabandit.service.guard import check_token
from tests.commands import begin, refused

ARMS = ["red", "green", "blue"]


@pytest.fixture(scope="module")
def one(client):
    """An experiment, by its path."""
    found = client.put(
        "/experiments/buttons",
        json={"policy": "thompson", "arms": ARMS, "rewards": "binary", "min_share": 0.1, "seed": 3},
    )
    assert found.status_code == 201, found.text
    return "/experiments/buttons"


def state(client, path):
    found = client.get(f"{path}/state").json()
    del found["time"]
    return found


def post(client, path, body):
    found = client.post(path, json=body)
    assert found.status_code == 200, found.text
    return found.json()


# What it does ------------------------------------------------------------------------------------


def test_choices_and_rewards(client, one, url):
    choice = post(client, f"{one}/choose", {})
    assert choice["arm"] in ARMS
    assert 0.1 <= choice["probability"] <= 0.8
    before = state(client, one)
    told = {"id": choice["id"], "value": 1}
    assert post(client, f"{one}/reward", told) == {"counted": True}
    assert post(client, f"{one}/reward", told) == {"counted": False}
    second = client.post(f"{one}/reward", json=told | {"value": 0})
    assert second.status_code == 400
    assert "has had the reward 1" in second.json()["error"]
    after = state(client, one)
    assert after["rewarded"] == before["rewarded"] + 1
    assert after["open"] == before["open"] - 1
    # Many at once, and players elsewhere see the same.
    many = post(client, f"{one}/choose", {"count": 20})["choices"]
    rewards = [{"id": item["id"], "value": place % 2} for place, item in enumerate(many)]
    assert post(client, f"{one}/rewards", {"rewards": rewards}) == {"counted": 20}
    assert post(client, f"{one}/rewards", {"rewards": rewards}) == {"counted": 0}
    batch = post(client, f"{one}/batch", {"plays": 40})["arms"]
    assert [item["arm"] for item in batch] == ARMS
    assert sum(item["plays"] for item in batch) == 40
    counts = [{"arm": item["arm"], "plays": item["plays"], "total": 1} for item in batch]
    counts = [item for item in counts if item["plays"]]
    assert post(client, f"{one}/counts", {"counts": counts}) == {"counted": 40}
    found = state(client, one)
    player = mb.policy("thompson").player(
        ARMS, store=url, experiment="buttons", rewards="binary", min_share=0.1, seed=3
    )
    assert [(view.arm, view.plays, view.mean) for view in player.indices()] == [
        (arm["arm"], arm["plays"], arm["mean"]) for arm in found["arms"]
    ]
    assert player.probabilities() == {arm["arm"]: arm["probability"] for arm in found["arms"]}
    assert found["open"] == 0
    for arm in found["arms"]:
        low, high = arm["interval"]
        assert 0.0 <= low < arm["mean"] < high <= 1.0
    history = client.get(f"{one}/history").json()
    assert sum(sum(arm["choices"]) for arm in history["arms"]) == 21
    assert client.get("/experiments").json()["experiments"][0]["rewarded"] >= 61
    chances = [arm["probability"] for arm in client.get(f"{one}/indices").json()["arms"]]
    assert sum(chances) == pytest.approx(1.0)


def test_experiments_are_begun_once(client, one):
    same = {"policy": "thompson", "arms": ARMS, "rewards": "binary", "min_share": 0.1, "seed": 3}
    assert client.put(one, json=same).status_code == 200
    other = client.put(one, json=same | {"seed": 4})
    assert other.status_code == 409
    assert "another seed" in other.json()["error"]
    # The content of a policy file, and a name that needs quoting.
    content = write_data(PolicyFile(policy=mb.policy("r + 1/n").content()))
    asked = {"policy": content, "arms": [0, "0"], "horizon": 30}
    name = "/experiments/50%25 caf%C3%A9 %22x%22 %3Cb%3E"
    made = client.put(name, json=asked)
    assert made.status_code == 201, made.text
    assert made.json()["horizon"] == 30
    assert made.json()["experiment"] == '50% café "x" <b>'
    assert client.get(f"{name}/state").json()["arms"][0]["arm"] == 0
    assert post(client, f"{name}/choose", {})["arm"] in (0, "0")


def test_clients_at_once_get_choices_of_their_own(client, one):
    found, problems = [], []

    def play():
        with httpx.Client(base_url=client.base_url, headers=client.headers, timeout=60) as own:
            for _ in range(6):
                choice = own.post(f"{one}/choose", json={}).json()
                found.append(choice["id"])
                told = own.post(f"{one}/reward", json={"id": choice["id"], "value": 1})
                wrong = own.post(f"{one}/reward", json={"id": "nobody", "value": 1})
                if told.json() != {"counted": True} or wrong.status_code != 400:
                    problems.append((told.text, wrong.text))

    before = state(client, one)["rewarded"]
    threads = [threading.Thread(target=play) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert problems == []
    assert len(set(found)) == 48
    assert state(client, one)["rewarded"] == before + 48


def test_it_stands_load(base):
    """What benchmarks/service.py does for longer: all acknowledged rewards are counted."""
    figures = asyncio.run(load(int(base.rsplit(":", 1)[1]), "ucb1", 8, 0.5))
    assert figures["requests"] > 0


# What it refuses -----------------------------------------------------------------------------------

JSON = {"Content-Type": "application/json"}
REFUSED = {
    "broken JSON": ("POST", "{one}/choose", b'{"count": ', JSON, 400, "no JSON"),
    "deep JSON": ("POST", "{one}/choose", b"[" * 100_000, JSON, 400, "no JSON"),
    "no UTF-8": ("POST", "{one}/choose", b'"\xff"', JSON, 400, "no JSON"),
    "not a number": ("POST", "{one}/reward", b'{"id": "x", "value": NaN}', JSON, 400, "NaN"),
    "endless": ("POST", "{one}/reward", b'{"id": "x", "value": 1e999}', JSON, 400, "finite"),
    "a list": ("POST", "{one}/choose", b"[]", JSON, 400, "must be an object"),
    "another field": ("POST", "{one}/choose", b'{"size": 3}', JSON, 400, "no such field"),
    "too many": ("POST", "{one}/choose", b'{"count": 10001}', JSON, 400, "10,000"),
    "none": ("POST", "{one}/choose", b'{"count": 0}', JSON, 400, "1 to"),
    "no value": ("POST", "{one}/reward", b'{"id": "x"}', JSON, 400, "value: it is missing"),
    "unknown id": ("POST", "{one}/reward", b'{"id": "x", "value": 1}', JSON, 400, "no choice"),
    "half a reward": ("POST", "{one}/reward", b'{"id": "x", "value": 0.5}', JSON, 400, "0 and 1"),
    "no rewards": ("POST", "{one}/rewards", b'{"rewards": []}', JSON, 400, "1 to 10,000"),
    "many plays": ("POST", "{one}/batch", b'{"plays": 1000001}', JSON, 400, "1,000,000"),
    "unknown arm": (
        "POST", "{one}/counts", b'{"counts": [{"arm": "red", "plays": 1, "total": 1}, '
        b'{"arm": "x", "plays": 1, "total": 1}]}', JSON, 400, "no arm 'x'",
    ),
    "twice an arm": (
        "POST", "{one}/counts", b'{"counts": [{"arm": "red", "plays": 1, "total": 1}, '
        b'{"arm": "red", "plays": 1, "total": 1}]}', JSON, 400, "twice",
    ),
    "too much": ("POST", "{one}/choose", b" " * 1_000_001, JSON, 413, "1,000,000 bytes"),
    "no JSON said": ("POST", "{one}/choose", b"{}", {}, 415, "Content-Type"),
    "a form": ("POST", "{one}/choose", b"{}", {"Content-Type": "text/plain"}, 415, "Content-Type"),
    "unknown experiment": ("POST", "/experiments/none/choose", b"{}", JSON, 404, "no experiment"),
    "unknown state": ("GET", "/experiments/none/state", b"", {}, 404, "no experiment"),
    "unknown path": ("POST", "{one}/destroy", b"{}", JSON, 404, "Not Found"),
    "other method": ("DELETE", "{one}/state", b"", {}, 405, "Not Allowed"),
    "long name": ("GET", f"/experiments/{'x' * 201}/state", b"", {}, 400, "200 letters"),
    "bad token": ("POST", "{one}/choose", b"{}", JSON | {"Authorization": "Bearer no"}, 401, "wrong"),
    "no bearer": ("POST", "{one}/choose", b"{}", JSON | {"Authorization": TOKEN}, 401, "wrong"),
    "bad token, state": ("GET", "{one}/state", b"", {"Authorization": ""}, 401, "wrong"),
    "bad token, list": ("GET", "/experiments", b"", {"Authorization": "Bearer"}, 401, "wrong"),
    "a file": (
        "PUT", "/experiments/new", b'{"policy": "/etc/x.json", "arms": ["a", "b"]}', JSON, 400,
        "reads no files",
    ),
    "no policy": ("PUT", "/experiments/new", b'{"policy": "ucb9", "arms": [1]}', JSON, 400, "unknown"),
    "no arms": ("PUT", "/experiments/new", b'{"policy": "ucb1", "arms": []}', JSON, 400, "empty"),
    "long arm": (
        "PUT", "/experiments/new", b'{"policy": "ucb1", "arms": ["%s"]}' % (b"x" * 201), JSON, 400,
        "at most 200 letters",
    ),
    "a name to hide": (
        "PUT", "/experiments/a%0Ab", b'{"policy": "ucb1", "arms": [1, 2]}', JSON, 400, "printable",
    ),
    "memory": ("PUT", "/experiments/new", b'{"policy": "ucb2", "arms": [1, 2]}', JSON, 400, "counts"),
    "damaged file": ("PUT", "/experiments/new", b'{"policy": {}, "arms": [1]}', JSON, 400, "format"),
}  # fmt: skip


@pytest.mark.parametrize("kind", REFUSED)
def test_what_is_refused_changes_nothing(client, one, kind):
    method, path, body, headers, status, word = REFUSED[kind]
    before = state(client, one)
    names = client.get("/experiments").json()
    found = client.request(method, path.format(one=one), content=body, headers=headers)
    assert found.status_code == status, found.text
    assert word in found.json()["error"]
    assert state(client, one) == before
    assert client.get("/experiments").json() == names


def test_a_body_without_a_length_is_limited(client, one):
    before = state(client, one)

    def pieces():
        for _ in range(30):
            yield b" " * 65_536

    try:
        found = client.post(f"{one}/choose", content=pieces(), headers=JSON)
        assert found.status_code == 413
    except httpx.WriteError:  # it need not listen to the end
        pass
    assert state(client, one) == before


def test_what_is_no_request_does_no_harm(client, one, base):
    port = int(base.rsplit(":", 1)[1])
    for rubbish in (b"\0" * 100, b"POST /experiments/buttons/choose HTTP/1.1\r\n\r\n", b"GET"):
        with socket.create_connection(("127.0.0.1", port)) as connection:
            connection.sendall(rubbish)
    assert client.get("/health").json()["status"] == "ok"


# Without a token ---------------------------------------------------------------------------------


def test_without_a_token_only_this_machine_is_served(tmp_path):
    url = f"sqlite:///{tmp_path / 'bandit.db'}"
    refused(f"serve | --store | {url}", tmp_path, "metabandit store init")
    from metabandit.play.store import Store

    Store(url).create()
    refused(f"serve | --store | {url} | --host | 0.0.0.0", tmp_path, "clients need a token")
    refused(f"serve | --store | {url} | --port | 70000", tmp_path, "port")
    refused(f"serve | --store | {url} | --policy | ucb1", tmp_path, "give --experiment")
    refused(f"serve | --store | {url} | --experiment | x", tmp_path, "--policy and --arms")
    (tmp_path / "token").write_text("short\n")
    refused(f"serve | --store | {url} | --token-file | token", tmp_path, "at least 16")
    command = (
        f"serve | --store | {url} | --port | 0 | --experiment | x | --policy | ucb1 | --arms | a,b"
    )
    with begin(command, tmp_path) as process:
        base = process.stderr.readline().split(" at ")[1].split(" ")[0]
        assert httpx.post(f"{base}experiments/x/choose", json={}).json()["arm"] in ("a", "b")
        # A page of another site, which a name of its own has brought here, or which sends a form.
        other = httpx.get(f"{base}experiments/x/state", headers={"Host": "evil.example:80"})
        assert other.status_code == 403
        plain = {"Content-Type": "text/plain"}
        form = httpx.post(f"{base}experiments/x/choose", content=b"{}", headers=plain)
        assert form.status_code == 415
        busy = base.rsplit(":", 1)[1].strip("/")
        refused(f"serve | --store | {url} | --port | {busy}", tmp_path, "choose another")
        process.terminate()
        assert process.wait(20) is not None


def test_tokens():
    assert check_token("x" * 16 + "\n", "0.0.0.0") == "x" * 16
    for bad in ("", "short", "é" * 20, "a b\n" * 9):
        with pytest.raises(mb.InputError, match="at least 16"):
            check_token(bad, "127.0.0.1")


def test_a_store_that_does_not_answer_is_said_to_be():
    from benchmarks.service import service

    from tests.databases import postgres_server

    with postgres_server() as server, service(server.url) as port:
        base, headers = f"http://127.0.0.1:{port}", {"Authorization": f"Bearer {TOKEN}"}
        with httpx.Client(base_url=base, headers=headers, timeout=60) as client:
            client.put("/experiments/x", json={"policy": "ucb1", "arms": [1, 2]})
            choice = post(client, "/experiments/x/choose", {})
            server.stop("immediate")
            told = {"id": choice["id"], "value": 1}
            for path, body in (("choose", {}), ("reward", told), ("batch", {"plays": 3})):
                found = client.post(f"/experiments/x/{path}", json=body)
                assert found.status_code == 503, found.text
                assert found.headers["Retry-After"] == "1"
            assert client.get("/health").status_code == 503
            server.start()
            assert post(client, "/experiments/x/reward", told) == {"counted": True}
            assert client.get("/health").status_code == 200


# Its description ---------------------------------------------------------------------------------


def test_the_description_is_that_of_the_service(client, one):
    found = httpx.get(f"{client.base_url}/openapi.json").json()
    assert found["openapi"] == "3.1.0"
    paths = set(found["paths"])
    assert {"/health", "/experiments/{name}/choose", "/experiments/{name}/reward"} <= paths
    ids = [entry["operationId"] for path in found["paths"].values() for entry in path.values()]
    assert len(set(ids)) == len(ids)
    body = found["paths"]["/experiments/{name}"]["put"]["requestBody"]
    schema = body["content"]["application/json"]["schema"]
    assert schema["required"] == ["policy", "arms"]
    assert schema["properties"]["on_duplicate"]["enum"] == ["refuse", "replace"]
    # Every path is served, and asks for the token if it says so.
    for path, entries in found["paths"].items():
        for method, entry in entries.items():
            answer = httpx.request(method, str(client.base_url) + path.format(name="buttons"))
            assert (answer.status_code == 401) == ("security" not in entry), path


def test_a_service_needs_no_arrays():
    """It starts fast: no NumPy, no compiler."""
    program = (
        "import sys, metabandit.service, metabandit.cli; "
        "assert not {'numpy', 'numba', 'scipy'} & set(sys.modules), sys.modules.keys()"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
