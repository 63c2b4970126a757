"""A real server process on loopback, with a store of its own."""

import httpx
import pytest
from benchmarks.service import TOKEN, service


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def url(request, tmp_path_factory):
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path_factory.mktemp('store') / 'bandit.db'}"
    return request.getfixturevalue("postgres").url


@pytest.fixture(scope="module")
def base(url):
    with service(url) as port:
        yield f"http://127.0.0.1:{port}"


@pytest.fixture(scope="module")
def client(base):
    headers = {"Authorization": f"Bearer {TOKEN}"}
    with httpx.Client(base_url=base, headers=headers, timeout=60) as found:
        yield found
