"""One set of compiler flags for every kernel, and the types that kernels exchange.

The floating-point flags are the safe ones. `nnan` and `ninf` would let the compiler drop the
checks for indices that are not numbers; `arcp` would let a result depend on how many lanes a
vector has.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import importlib
import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import FunctionType
from typing import IO, Any

import numba
import numpy as np
from numba import types
from numba.core.ccallback import CFunc
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler
from numba.core.sigutils import normalize_signature
from numba.extending import register_jitable

from .. import lookahead, numerics

try:
    import fcntl

    from numba.core.compiler_lock import global_compiler_lock
except ImportError:  # Windows has no such locks, and numba does not promise its own
    fcntl = None  # type: ignore[assignment]
    global_compiler_lock = contextlib.nullcontext()  # type: ignore[assignment]


# A process that is stopped, not ended, keeps its locks; the others then compile for themselves.
_PATIENCE = 120.0  # seconds
_HELD: set[Path] = set()


@contextlib.contextmanager
def _alone(lock: Path) -> Iterator[None]:
    """Let one process at a time into the block; where nothing can be locked, let all in.

    The system takes a lock from a process that ends, however it ends. Threads keep each other out
    by other means.
    """
    with contextlib.ExitStack() as scope:
        if fcntl is not None and lock not in _HELD:
            with contextlib.suppress(OSError):
                file = scope.enter_context(lock.open("a"))
                _wait_for(file)
                # Closing is not enough if this process has forked.
                scope.callback(fcntl.flock, file, fcntl.LOCK_UN)
                _HELD.add(lock)
                scope.callback(_HELD.remove, lock)
        yield


def _wait_for(file: IO[str]) -> None:
    """Lock a file, or raise OSError."""
    end = time.monotonic() + _PATIENCE
    while True:
        try:
            return fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > end:
                raise
        time.sleep(0.02)


class _Spent:
    """The seconds that compiling takes, or reading compiled code from disk; the lock is held meanwhile."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self.inside = 0
        self.begun = 0.0

    def __enter__(self) -> None:
        # Kernels compile the kernels that they call.
        if not self.inside:
            self.begun = time.monotonic()
        self.inside += 1

    def __exit__(self, *_: object) -> None:
        self.inside -= 1
        if not self.inside:
            self.seconds += time.monotonic() - self.begun


_SPENT = _Spent()


def seconds_at_it() -> float:
    """How long what is being compiled now has taken so far; 0 if nothing is."""
    return time.monotonic() - _SPENT.begun if _SPENT.inside else 0.0


def seconds_compiling() -> float:
    """How long this process has compiled so far."""
    return _SPENT.seconds


# The folder beside compiled kernels that has programs compiled to code of their own (fused.py).
FUSED = "fused"


class _Stamp:
    """Which sources the code of a cache was compiled from: those of a folder, and `others`.

    numba looks at the file of a kernel, not at the files of the functions inside it.
    """

    def __init__(self, folder: Path, *others: Path) -> None:
        sources = b"".join(path.read_bytes() for path in [*sorted(folder.glob("*.py")), *others])
        self.digest = hashlib.sha256(sources).hexdigest()
        self.path = folder / "__pycache__" / "kernels.sha256"
        self.lock = self.path.with_suffix(".lock")

    def read(self) -> str | None:
        """What is on disk, if anything."""
        try:
            return self.path.read_text()
        except OSError:
            return None

    def forget_stale_code(self) -> None:
        """Empty the cache if a source has changed."""
        with contextlib.suppress(OSError):  # a folder that cannot be written has no cache either
            if self.read() == self.digest:
                return
            self.path.parent.mkdir(exist_ok=True)
            with _alone(self.lock):
                if self.read() == self.digest:  # another process was first, and may have compiled
                    return
                for path in self.path.parent.glob("*.nb[ic]"):
                    path.unlink(missing_ok=True)
                shutil.rmtree(self.path.parent / FUSED, ignore_errors=True)
                self.path.write_text(self.digest)

    def is_ours(self) -> bool:
        """Whether the cache has code of the sources that this process was started with.

        A newer process may have emptied it; what this one would read or save is not meant for it.
        """
        return self.read() in (None, self.digest)

    def guard(self, cache: Any) -> None:
        """Let numba's cache of a kernel read and save only while it is ours."""
        load, save = cache.load_overload, cache.save_overload

        def load_ours(*given: Any) -> Any:
            try:
                return load(*given) if self.is_ours() else None
            except Exception:
                # The files are damaged: they are forgotten, and the kernel is compiled again.
                with contextlib.suppress(OSError):
                    cache.flush()
                return None

        def save_ours(signature: Any, made: Any) -> None:
            # For a function that is called through a pointer numba forgets what its library needs.
            made.library._ensure_finalized()
            made.reload_init[:] = made.library._reload_init
            # Where nothing can be written, as on a full disk, the code is kept for this process only.
            with _alone(self.lock), contextlib.suppress(OSError):  # nobody empties it meanwhile
                if self.is_ours():
                    save(signature, made)

        cache.load_overload, cache.save_overload = load_ours, save_ours


_STAMP = _Stamp(Path(__file__).parent, Path(numerics.__file__), Path(lookahead.__file__))
_STAMP.forget_stale_code()


def stamp() -> str:
    """What changes when any kernel does."""
    return _STAMP.digest


_FLAGS: dict[str, Any] = {
    "nopython": True,
    "nogil": True,
    "error_model": "numpy",
    "fastmath": {"nsz", "contract"},
}


# Kernels get their arrays from Python and slice them at every turn. Counting references to the slices
# would cost as much as the work on short rows; without the counting a kernel cannot make arrays.
_NO_COUNTING: dict[str, Any] = {"_nrt": False}


def _lock_of(kernel: Any) -> Path:
    """The file that a process locks to compile a kernel."""
    function = kernel.py_func
    module = function.__module__.rsplit(".", 1)[-1]
    return Path(kernel.stats.cache_path) / f"{module}.{function.__qualname__}.lock"


@dataclass(frozen=True)
class _Needed:
    """A kernel that compiled code calls by its symbol, and which must be there before that code is loaded."""

    module: str
    name: str
    arguments: tuple[Any, ...]
    symbol: str

    def __call__(self) -> None:
        kernel = getattr(importlib.import_module(self.module), self.name)
        kernel.compile(self.arguments)
        if kernel.overloads[self.arguments].fndesc.llvm_func_name != self.symbol:
            raise RuntimeError(f"{self.name} has been compiled again, under another symbol")


class _Library(JITCodeLibrary):
    """Compiled code that has its own copy of what it calls, except for separate kernels."""

    def add_linking_library(self, library: Any) -> None:
        needed = getattr(library, "needed", None)
        if needed is None:
            super().add_linking_library(library)
        else:
            self._reload_init.add(needed)

    def _optimize_functions(self, module: Any) -> None:
        # numba itself makes a manager for each function, also for those that are only declared.
        module.data_layout = self._codegen._data_layout
        manager, builder = self._codegen._function_pass_manager()
        for function in module.functions:
            if not function.is_declaration:
                manager.run(function, builder)


class _NoCode:
    """In place of numba's code generator: there is no machine code that could need an environment."""

    @staticmethod
    def set_env(*_: Any) -> None:
        pass


class _InnerLibrary(_Library):
    """The same of a function that only kernels call: they take it as it is before it becomes machine code."""

    codegen = _NoCode

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()
        self._finalized = True

    def get_pointer_to_function(self, name: str) -> int:
        self._ensure_finalized()
        return 0


class _LaneLibrary(_InnerLibrary):
    """The same of a function that vanishes into its callers, which optimise it."""

    def _optimize_final_module(self) -> None:
        pass


class _Kernels(Compiler):
    """numba's compiler, with libraries of our own."""

    library: Any = _Library

    def compile_extra(self, function: Any) -> Any:
        state = self.state
        state.library = self.library(state.targetctx.codegen(), function.__qualname__)
        state.library.enable_object_caching()
        return super().compile_extra(function)


class _Inner(_Kernels):
    library = _InnerLibrary


class _Lanes(_Kernels):
    library = _LaneLibrary


def _without_literals(kernel: Any) -> Any:
    """A kernel that is compiled once for all numbers: numba does so for each that a caller writes out."""
    if hasattr(kernel, "compile"):
        compile_or_load = kernel.compile
        kernel.compile = lambda signature: compile_or_load(_plain(signature))
    return kernel


def _plain(signature: Any) -> tuple[Any, ...]:
    return tuple(map(types.unliteral, normalize_signature(signature)[0]))


def _compiled_once(kernel: Any, *, separate: bool = False) -> Any:
    """Let one process compile a kernel; others that want it meanwhile wait, and find it on disk.

    Two that save at once could also spoil numba's cache: each would write the index that it knows.

    A thread takes the lock of numba's compiler first. So one thread of a process at most waits for
    files, and does so in the order in which kernels call each other.
    """
    if not hasattr(kernel, "compile"):
        return kernel  # NUMBA_DISABLE_JIT leaves functions as they are
    compile_or_load = kernel.compile
    lock = _lock_of(kernel)
    _STAMP.guard(kernel._cache)

    @functools.wraps(compile_or_load)
    def alone(signature: Any) -> Any:
        arguments = _plain(signature)
        if arguments in kernel.overloads:
            return compile_or_load(arguments)
        with global_compiler_lock, _alone(lock), _SPENT:
            entry = compile_or_load(arguments)
            made = kernel.overloads[arguments]
            # numba forgets this where it loads a library.
            made.library._reload_init.update(made.reload_init)
            if separate:
                symbol = made.fndesc.llvm_func_name
                made.library.needed = _Needed(
                    function.__module__, function.__name__, arguments, symbol
                )
            return entry

    function = kernel.py_func
    kernel.compile = alone
    return kernel


_KERNEL: dict[str, Any] = {"cache": True, "pipeline_class": _Kernels, **_FLAGS}


def jit(function: Any) -> Any:
    """Compile `function`, which makes no arrays, at its first call and keep the result on disk."""
    return _compiled_once(numba.jit(function, **_KERNEL, **_NO_COUNTING))


def separate_jit(function: Any) -> Any:
    """The same for a long function that other kernels call.

    They call one piece of machine code, where they would otherwise compile a copy each.
    """
    return _compiled_once(numba.jit(function, **_KERNEL, **_NO_COUNTING), separate=True)


def allocating_jit(function: Any) -> Any:
    """The same as `jit` for a function that makes arrays."""
    return _compiled_once(numba.jit(function, **_KERNEL))


# Only kernels call these: without machine code of their own, or any for Python, they compile faster.
_INNER: dict[str, Any] = {
    **_NO_COUNTING,
    "pipeline_class": _Inner,
    "no_cpython_wrapper": True,
    "no_cfunc_wrapper": True,
}
_LANE: dict[str, Any] = {**_INNER, "pipeline_class": _Lanes, "forceinline": True}


def part(function: Any) -> Any:
    """Compile a function that only kernels call, which makes no arrays, into what calls it."""
    return _without_literals(numba.jit(function, **_FLAGS, **_INNER))


def spliced(function: Any) -> Any:
    """The same for a long function with one caller, which is compiled as if it stood there.

    The compiler optimises a function with all that it calls, at every level of calls again.
    """
    return numba.jit(function, inline="always", **_FLAGS, **_INNER)


def lane(function: Any) -> Any:
    """Compile a function of one lane that must vanish into the loop over lanes around it.

    LLVM keeps larger functions as calls, and a loop with a call in it is not vectorised.
    """
    return _without_literals(numba.jit(function, **_FLAGS, **_LANE))


def exact_lane(function: Any) -> Any:
    """The same without fused multiplication and addition: what it computes does not depend on what surrounds it."""
    flags = {**_FLAGS, "fastmath": {"nsz"}}
    return _without_literals(numba.jit(function, **flags, **_LANE))


def jit_as(name: str, kernel: Any) -> Any:
    """The same kernel, compiled and kept under another name."""
    function = getattr(kernel, "py_func", kernel)
    copy = FunctionType(function.__code__, function.__globals__, name)
    copy.__qualname__, copy.__module__ = name, function.__module__
    return jit(copy)


# Plain functions that kernels call by their own names, compiled into whatever calls them.
for _function in (
    numerics.kl_upper,
    numerics.stirling_rest,
    numerics.beta_fraction,
    numerics.beta_start,
    numerics.beta_quantile,
    numerics.beta_constant,
    numerics.beta_height,
    numerics.beta_share,
    numerics.beta_optimist,
    numerics.normal_quantile,
    numerics.normal_optimist,
    numerics.gamma_share,
    numerics.gamma_quantile,
    numerics.poisson_quantile,
    numerics.bits,
    numerics.unit,
    numerics._lessened,
    numerics.beta_draw,
    lookahead.others_best,
    lookahead.beta_gain,
    lookahead.normal_gain,
    lookahead.best_normal_gain,
    lookahead.beta_knowledge,
    lookahead.normal_knowledge,
    lookahead.wide,
    lookahead.beta_end,
    lookahead.spaced,
    lookahead.fill_beta,
    lookahead.fill_normal,
    lookahead.best_chances,
    lookahead.least_ratio,
    lookahead.directed_shares,
    lookahead.top_two_shares,
    lookahead.shares,
    lookahead.adaptive_bounds,
):
    register_jitable(**_FLAGS, **_INNER)(_function)


_POINTERS: list[Callable[[], Any]] = []


def pointer(signatures: Mapping[Any, Any], *, cache: bool = True) -> Any:
    """A function that kernels call through a pointer, so that they stay as they are for a new one.

    What the decorator leaves is called with the kind of lanes (float32 if nothing is said) to get the
    pointer: it compiles the function, or reads it from disk, when it is first asked for.
    """

    def delayed(function: Any) -> Any:
        @functools.cache
        def compiled(kind: Any = np.float32) -> Any:
            code: Any = CFunc(
                function,
                normalize_signature(signatures[kind]),
                locals={},
                options=_FLAGS,
                pipeline_class=_Kernels,
            )
            if not cache:
                with global_compiler_lock, _SPENT:
                    code.compile()
                return code
            code.enable_caching()
            # The stamp is locked to save, no longer: the kernels that this one calls have locks, too.
            _STAMP.guard(code._cache)
            lock = _lock_of(numba.jit(function, cache=True))
            with global_compiler_lock, _alone(lock), _SPENT:
                code.compile()
            return code

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


_bits_row = types.Array(types.uint32, 1, "C")
_numbers = types.Array(types.float64, 1, "C")
_KINDS = {np.float32: types.float32, np.float64: types.float64}


def _rows(kind: Any, dimensions: int) -> Any:
    return types.Array(_KINDS[kind], dimensions, "C")


# Below, a signature for each kind of lanes.

# draw(uniform, parameters, reward): one reward per lane, the inverse distribution function of the
# arm at a uniform number; parameters has one row for each parameter of the family.
DRAW = {kind: types.void(_rows(kind, 1), _rows(kind, 2), _rows(kind, 1)) for kind in _KINDS}

# operator(x, y, z): a person's own operator of one lane; those of fewer operands read no more.
OPERATOR = {kind: types.float64(*3 * [types.float64]) for kind in _KINDS}

# decide(step, t, horizon, stats, sums, memory, parameters, keys, chosen): the arm that each lane
# plays. stats[arm] has the rows n, r, s; sums[arm] the rows reward sum and sum of squares;
# memory is the policy's own and starts at zero.
DECIDE = {
    kind: types.void(
        types.int64,
        types.float64,
        types.int64,
        _rows(kind, 3),
        _rows(kind, 3),
        _rows(kind, 2),
        _numbers,
        _bits_row,
        _bits_row,
    )
    for kind in _KINDS
}
