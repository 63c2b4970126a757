"""One set of compiler flags for every kernel, and the types that kernels exchange.

The floating-point flags are the safe ones. `nnan` and `ninf` would let the compiler drop the
checks for indices that are not numbers; `arcp` would let a result depend on how many lanes a
vector has.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba
from numba import types


def _forget_stale_code() -> None:
    """Empty the cache beside these files if any of them has changed.

    numba looks at the file of a kernel, not at the files of the functions inside it.
    """
    folder = Path(__file__).parent
    sources = b"".join(path.read_bytes() for path in sorted(folder.glob("*.py")))
    digest = hashlib.sha256(sources).hexdigest()
    stamp = folder / "__pycache__" / "kernels.sha256"
    with contextlib.suppress(OSError):  # a folder that cannot be written has no cache either
        if stamp.exists() and stamp.read_text() == digest:
            return
        for path in stamp.parent.glob("*.nb[ic]"):
            path.unlink(missing_ok=True)
        stamp.parent.mkdir(exist_ok=True)
        stamp.write_text(digest)


_forget_stale_code()

_FLAGS: dict[str, Any] = {
    "nopython": True,
    "nogil": True,
    "error_model": "numpy",
    "fastmath": {"nsz", "contract"},
}


# Kernels get their arrays from Python and slice them at every turn. Counting references to the slices
# would cost as much as the work on short rows; without the counting a kernel cannot make arrays.
_NO_COUNTING: dict[str, Any] = {"_nrt": False}


def jit(function: Any) -> Any:
    """Compile `function`, which makes no arrays, at its first call and keep the result on disk."""
    return numba.jit(function, cache=True, **_FLAGS, **_NO_COUNTING)


def allocating_jit(function: Any) -> Any:
    """The same for a function that makes arrays."""
    return numba.jit(function, cache=True, **_FLAGS)


def lane(function: Any) -> Any:
    """Compile a function of one lane that must vanish into the loop over lanes around it.

    LLVM keeps larger functions as calls, and a loop with a call in it is not vectorised.
    """
    return numba.jit(function, cache=True, forceinline=True, **_FLAGS, **_NO_COUNTING)


_POINTERS: list[Callable[[], Any]] = []


def pointer(signature: Any, *, cache: bool = True) -> Any:
    """A function that kernels call through a pointer, so that they stay as they are for a new one.

    What the decorator leaves is called without arguments to get the pointer: it compiles the
    function, or reads it from disk, when it is first asked for.
    """

    def delayed(function: Any) -> Any:
        @functools.cache
        def compiled() -> Any:
            return numba.cfunc(signature, cache=cache, **_FLAGS)(function)

        if cache:
            _POINTERS.append(compiled)
        return compiled

    return delayed


def compile_pointers() -> None:
    """Compile all pointers of the modules that are loaded, so that later runs need not."""
    for compiled in _POINTERS:
        compiled()


def is_cached(kernel: Any) -> bool:
    """Whether compiled code of this kernel is on disk; stale code was removed on import."""
    function = kernel.py_func
    name = f"{function.__module__.rsplit('.', 1)[-1]}.{function.__name__}-*.nbi"
    return any(Path(kernel.stats.cache_path).glob(name))


_float_row = types.Array(types.float32, 1, "C")
_float_rows = types.Array(types.float32, 2, "C")
_arm_rows = types.Array(types.float32, 3, "C")
_bits_row = types.Array(types.uint32, 1, "C")
_numbers = types.Array(types.float64, 1, "C")

# draw(uniform, parameters, reward): one reward a lane, the inverse distribution function of the
# arm at a uniform number; parameters has one row for each parameter of the family.
DRAW = types.void(_float_row, _float_rows, _float_row)

# decide(step, t, horizon, stats, sums, memory, parameters, keys, chosen): the arm that each lane
# plays. stats[arm] has the rows n, r, s; sums[arm] the rows reward sum and sum of squares;
# memory is the policy's own and starts at zero.
DECIDE = types.void(
    types.int64,
    types.float64,
    types.int64,
    _arm_rows,
    _arm_rows,
    _float_rows,
    _numbers,
    _bits_row,
    _bits_row,
)
