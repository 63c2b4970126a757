"""Products of matrices are made by one thread, whoever asks and whoever limited them before."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
from threadpoolctl import ThreadpoolController, threadpool_limits

from metabandit.engine.threads import one_blas_thread


def most_threads() -> int:
    found = ThreadpoolController().select(user_api="blas").info()
    return max(library["num_threads"] for library in found)


def limited() -> int:
    with one_blas_thread:
        return most_threads()


@pytest.mark.parametrize("first", [True, False], ids=["after another thread", "inside its limit"])
def test_one_thread_from_any_thread(first):
    with threadpool_limits(2, user_api="blas"):
        free = most_threads()
        if first:
            assert limited() == 1
        with ThreadPoolExecutor(1) as pool:
            assert pool.submit(limited).result() == 1
        assert limited() == 1
        assert most_threads() == free


def test_the_last_one_out_restores_the_limit():
    with threadpool_limits(2, user_api="blas"), ThreadPoolExecutor(1) as pool:
        free = most_threads()
        pool.submit(one_blas_thread.__enter__).result()
        with one_blas_thread:
            pool.submit(one_blas_thread.__exit__).result()
            assert most_threads() == 1
        assert most_threads() == free
