"""What scripts/theory.py and scripts/planted.py share: the command, many runs at once, the solver
for saddle points, and how tables and figures are written."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import torch
from matplotlib.figure import Figure
from scipy.optimize import minimize, nnls
from torch import Tensor, nn
from torch.func import functional_call
from torch.fx.experimental.proxy_tensor import make_fx
from torch.overrides import TorchFunctionMode

# --- the command ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Findings:
    """files: their content by name. words: lines for the user. violations: lines about bugs."""

    files: Mapping[str, str | Figure]
    words: Sequence[str]
    violations: Sequence[str]


Find = Callable[[Sequence[int], bool, int], Findings]  # of the seeds, quick, processes


def run_study(
    find: Find, name: str, description: str, arguments: Sequence[str] | None, quick_seeds: int = 20
) -> int:
    """Write `<out>/<name>/` and print what was found; 1 if something must not be, else 0."""
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, default=Path("report"), metavar="DIR")
    parser.add_argument("--seeds", type=int, metavar="N", help="seeds 0 … N−1, N ≥ 2")
    parser.add_argument("--quick", action="store_true", help="seconds, to see that it works")
    args = parser.parse_args(arguments)
    seeds = args.seeds if args.seeds is not None else quick_seeds if args.quick else 20
    if seeds < 2:
        parser.error(f"--seeds {seeds}: an interval over seeds takes 2 or more")
    folder = args.out / name
    folder.mkdir(parents=True, exist_ok=True)  # before the work
    findings = find(range(seeds), args.quick, 1 if args.quick else os.cpu_count() or 1)
    for file, content in findings.files.items():
        if isinstance(content, Figure):
            for kind in ("png", "pdf"):
                content.savefig(folder / f"{file}.{kind}")
        else:
            (folder / file).write_text(content, "utf-8")
    print(*findings.words, sep="\n")
    print(*findings.violations, sep="\n", end="\n" * bool(findings.violations), file=sys.stderr)
    print(f"written: {folder}")
    return 1 if findings.violations else 0


def markdown_table(
    head: Sequence[str], rows: Sequence[Sequence[str]], text_columns: Sequence[str]
) -> str:
    """Columns that do not hold text hold numbers and are aligned to the right."""
    lines = [head, ["---" if name in text_columns else "---:" for name in head], *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


# --- many runs at once ----------------------------------------------------------------------------


def side_by_side(
    job: Callable[..., Any], arguments: Sequence[tuple[Any, ...]], processes: int
) -> Iterator[Any]:
    """job(*arguments[0]), job(*arguments[1]), … in order, each on one thread."""
    alone = partial(_on_one_thread, job)
    if processes == 1:
        yield from map(alone, arguments)
        return
    with ProcessPoolExecutor(processes, mp_context=get_context("spawn")) as pool:
        yield from pool.map(alone, arguments)


def _on_one_thread(job: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
    with one_thread():
        return job(*arguments)


@contextmanager
def one_thread() -> Iterator[None]:
    """torch on one thread: for matrices this small, threads wait for each other."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


class Lanes:
    """n modules that differ in nothing but their buffers, moved together by `torch.vmap`.

    A call does what each module's forward does. After PLAIN_CALLS the operations are recorded and
    played back from then on: vmap itself would take most of the time.

    Attributes:
        state: every buffer of the modules by its name, [n, ...].
    """

    PLAIN_CALLS = 50  # what recording takes

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
        if self._calls == self.PLAIN_CALLS:
            copies = {name: value.clone() for name, value in self.state.items()}
            with _OutOfPlace():
                self._recorded = make_fx(self._move)(copies, inputs)
            _drop_idle(self._recorded.graph)
            self._recorded.recompile()
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


def _drop_idle(graph: torch.fx.Graph) -> None:
    """Leave out views of a shape as it is, and what nobody uses."""
    aten = torch.ops.aten
    views = [aten.view, aten._unsafe_view, aten.expand, aten.alias]
    for node in graph.nodes:
        if node.target in [view.default for view in views]:
            source = node.args[0]
            if node.meta["val"].shape == source.meta["val"].shape:
                node.replace_all_uses_with(source)
                graph.erase_node(node)
        elif node.target is aten.select.int and not node.users:
            graph.erase_node(node)


class _OutOfPlace(TorchFunctionMode):
    """What vmap has no rule for, in place of x or with `out=x`, as a copy into x."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = dict(kwargs or {})
        if func.__name__ in ("addcmul_", "clamp_", "square_"):
            return args[0].copy_(getattr(Tensor, func.__name__[:-1])(*args, **kwargs))
        out = kwargs.pop("out", None)
        result = func(*args, **kwargs)
        return result if out is None else out.copy_(result)


# --- the saddle point of a convex problem ---------------------------------------------------------

Losses = Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]
"""W [P] ↦ f(W) [K] and J [K, P], its rows ∇f_k; every f_k strongly convex."""


@dataclass(frozen=True)
class SaddlePoint:
    """min_W max_{p∈Δ} p·f(W): W* [P] and p* [K], with the duality gap as certificate.

    upper: max_k f_k(W*) ≥ the value. lower: min_W p*·f(W) ≤ the value.
    """

    model: np.ndarray
    weights: np.ndarray
    upper: float
    lower: float


def solve_saddle(losses: Losses, num_parameters: int) -> SaddlePoint:
    """Epigraph form: min ε over (W, ε) with f_k(W) ≤ ε for all k, by SLSQP."""
    P = num_parameters
    f, _ = losses(np.zeros(P))
    solution = minimize(
        lambda x: (x[-1], np.append(np.zeros(P), 1.0)),
        np.append(np.zeros(P), f.max()),
        jac=True,
        method="SLSQP",
        constraints={
            "type": "ineq",
            "fun": lambda x: x[-1] - losses(x[:-1])[0],
            "jac": lambda x: np.column_stack([-losses(x[:-1])[1], np.ones(len(f))]),
        },
        options={"ftol": 1e-14, "maxiter": 1000},
    )
    W = solution.x[:-1]
    f, J = losses(W)
    # p*: Σ_k p_k ∇f_k vanishes over the domains with f_k = ε, by non-negative least squares.
    active = f > f.max() - 1e-6
    one = 1e3  # weighs Σ p = 1 above stationarity, which then need not be exact
    system = np.vstack([J[active].T, np.full((1, active.sum()), one)])
    p = np.zeros(len(f))
    p[active] = nnls(system, np.append(np.zeros(P), one))[0]
    p /= p.sum()
    return SaddlePoint(W, p, float(f.max()), minimise_mixture(losses, p, P)[0])


def duality_gap(losses: Losses, W: np.ndarray, p: np.ndarray) -> float:
    """max_p' L(p', W) − min_W' L(p, W') ≥ 0 for W [P], p [K]; 0 at a saddle point only."""
    return float(losses(W)[0].max()) - minimise_mixture(losses, p, len(W))[0]


def minimise_mixture(
    losses: Losses, p: np.ndarray, num_parameters: int
) -> tuple[float, np.ndarray]:
    """min_W p·f(W), which is smooth and strongly convex, and its W [P]."""

    def mixture(W: np.ndarray) -> tuple[float, np.ndarray]:
        f, J = losses(W)
        return float(p @ f), p @ J

    start = np.zeros(num_parameters)
    options = {"ftol": 1e-15, "gtol": 1e-10, "maxiter": 1000}
    solution = minimize(mixture, start, jac=True, method="L-BFGS-B", options=options)
    return float(solution.fun), solution.x
