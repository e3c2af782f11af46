"""Many runs at once: modules moved together by `torch.vmap`, jobs in processes."""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from functools import partial
from multiprocessing import get_context
from typing import Any, TypeVar

import torch
from torch import Tensor, nn
from torch.func import functional_call
from torch.fx import Graph
from torch.fx.experimental.proxy_tensor import make_fx
from torch.overrides import TorchFunctionMode

Result = TypeVar("Result")
_PLAIN_CALLS = 50  # what recording takes


def side_by_side(
    job: Callable[..., Result], arguments: Sequence[tuple[Any, ...]], workers: int
) -> Iterator[Result]:
    """job(*arguments[0]), job(*arguments[1]), … in order, each on one thread; workers = 1: in this
    process."""
    alone = partial(_on_one_thread, job)
    if workers == 1:
        yield from map(alone, arguments)
        return
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        yield from pool.map(alone, arguments)


def _on_one_thread(job: Callable[..., Result], arguments: tuple[Any, ...]) -> Result:
    with one_thread():
        return job(*arguments)


@contextmanager
def one_thread() -> Iterator[None]:
    """torch on one thread within the block: for matrices so small, threads wait for each other."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


class Lanes:
    """n modules that differ in nothing but their buffers, one for each lane.

    A call does what each module's forward does. After 50 calls the operations are recorded and
    played back from then on: vmap itself would take most of the time.

    Attributes:
        state: every buffer of the modules by its name, [n, ...].
    """

    def __init__(self, modules: Sequence[nn.Module]) -> None:
        buffers = [dict(module.named_buffers()) for module in modules]
        self.state = {name: torch.stack([own[name] for own in buffers]) for name in buffers[0]}
        self._calls = 0
        self._recorded: Any = None

        def move(state: dict[str, Tensor], inputs: Tensor) -> None:
            functional_call(modules[0], state, (inputs,))

        self._move = torch.vmap(move, out_dims=None)

    def __call__(self, inputs: Tensor) -> None:
        """Every lane gets its own inputs [n, ...]; its buffers change in place."""
        self._calls += 1
        if self._calls == _PLAIN_CALLS:
            self._recorded = self._record(inputs)
        if self._recorded is None:
            with _OutOfPlace():
                self._move(self.state, inputs)
        else:
            self._recorded(self.state, inputs)

    def keep(self, n: int) -> None:
        """Drop all but the first n lanes."""
        self.state = {name: value[:n].clone() for name, value in self.state.items()}
        self._calls, self._recorded = 0, None

    def put_back(self, lane: int, module: nn.Module) -> None:
        """Write a lane's buffers into a module of that kind."""
        for name, buffer in module.named_buffers():
            buffer.copy_(self.state[name][lane])

    def _record(self, inputs: Tensor) -> Any:
        copies = {name: value.clone() for name, value in self.state.items()}
        with _OutOfPlace():
            recorded = make_fx(self._move)(copies, inputs)
        _drop_idle(recorded.graph)
        recorded.recompile()
        return recorded


_aten = torch.ops.aten
_VIEWS = (_aten.view.default, _aten._unsafe_view.default, _aten.expand.default, _aten.alias.default)
_WITHOUT_RULE = ("addcmul_", "clamp_", "square_")  # done lane by lane under vmap


def _drop_idle(graph: Graph) -> None:
    """Leave out views of a shape as it is, and what nobody uses."""
    for node in graph.nodes:
        if node.target in _VIEWS:
            source = node.args[0]
            if node.meta["val"].shape == source.meta["val"].shape:
                node.replace_all_uses_with(source)
                graph.erase_node(node)
        elif node.target is _aten.select.int and not node.users:
            graph.erase_node(node)


class _OutOfPlace(TorchFunctionMode):
    """What vmap has no rule for, in place of x or with `out=x`, as a copy into x."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = dict(kwargs or {})
        if func.__name__ in _WITHOUT_RULE:
            return args[0].copy_(getattr(Tensor, func.__name__[:-1])(*args, **kwargs))
        out = kwargs.pop("out", None)
        result = func(*args, **kwargs)
        return result if out is None else out.copy_(result)
