"""The captured iteration, played on the CPU by a stand-in for CUDA's graphs.

The stand-in runs the step again as it was captured: what changes from one iteration to the next
must lie on the device, so it takes the host's numbers away before each replay. On a GPU the same
comparison is made with real graphs.
"""

from pathlib import Path
from typing import Any

import pytest
import torch
from tiny import ADAMW, iterated, many, run_under_way

from robustmd.registry import AUGMENTATIONS, Augmentation
from robustmd.training.run import Run
from robustmd.training.steps import as_before, captured_step

METHODS = ["even", "opt", "kl", "ot", "groupdro", "minimax", "famo", "best_response", "vrex"]
NEEDS = {"best_response": ["method.every=4"]}


def stand_in(run: Run) -> Any:
    """Turns a step into one that sees no number of the host's."""

    def capture(step: Any) -> Any:
        def replay() -> None:
            iteration, rates = run.iteration, run.learner.rates
            run.iteration = run.learner.rates = None  # type: ignore[assignment]
            marks = list(run.clock.marks)
            step()
            run.iteration, run.learner.rates, run.clock.marks = iteration, rates, marks

        return replay

    return capture


@pytest.mark.parametrize("method", METHODS)
def test_a_captured_iteration_does_what_a_plain_one_does(method: str, tmp_path: Path) -> None:
    settings = [f"method={method}", *NEEDS.get(method, []), "logging.every=12"]
    plain, captured = (run_under_way(tmp_path, *settings) for _ in range(2))
    step = captured_step(captured, stand_in(captured))
    assert callable(step)
    rows, parameters = iterated(plain, 12)
    same_rows, same_parameters = iterated(captured, 12, step)
    assert rows == same_rows
    assert all(map(torch.equal, parameters, same_parameters))


@pytest.mark.parametrize(
    "settings",
    [
        ADAMW,
        ["training.optimizer=nadam"],
        ["backbone=convnet", "backbone.width=0.5"],
        ["data.augment=standard"],
        ["logging.every=2"],
    ],
)
def test_so_it_does_with_other_steps_norms_and_images(settings: list[str], tmp_path: Path) -> None:
    plain, captured = (run_under_way(tmp_path, "method=opt", *settings) for _ in range(2))
    step = captured_step(captured, stand_in(captured))
    for _ in range(4):  # across blocks of the log
        one, other = iterated(plain, 2), iterated(captured, 2, step)
        assert one[0] == other[0]
        assert all(map(torch.equal, one[1], other[1]))


def test_so_it_does_across_a_block_of_draws_and_with_drawn_domains(tmp_path: Path) -> None:
    settings = ["method=opt", "training.domains_per_batch=4", "training.iterations=300"]
    plain, captured = (run_under_way(tmp_path, *settings, domains=many(6)) for _ in range(2))
    step = captured_step(captured, stand_in(captured))
    for run in (plain, captured):
        run.iteration = 97
    for _ in range(3):
        assert str(iterated(plain, 2)) == str(iterated(captured, 2, step))  # as text: NaN = NaN


def test_warming_up_and_capturing_leave_nothing(tmp_path: Path) -> None:
    run = run_under_way(tmp_path, "method=opt", "backbone=convnet", "training.ema=0.9")
    before = {name: value.clone() for name, value in run.learner.state_dict().items()}
    with as_before(run):
        iterated(run, 3)
        assert any(not run.learner.state_dict()[name].equal(x) for name, x in before.items())
    after = run.learner.state_dict()
    assert all(torch.equal(after[name].nan_to_num(), x.nan_to_num()) for name, x in before.items())


def test_what_speaks_against_a_graph_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(AUGMENTATIONS, "own", Augmentation("own", lambda x: x, None))
    own = run_under_way(tmp_path, "data.augment=own")
    assert "draws from torch's generators" in str(captured_step(own))
    monkeypatch.setattr(type(own.images), "resident", False)
    assert "do not fit on the device" in str(captured_step(run_under_way(tmp_path)))


def test_a_capture_that_fails_is_a_reason_and_the_run_is_whole(tmp_path: Path) -> None:
    plain, run = (run_under_way(tmp_path, "method=opt") for _ in range(2))

    def failing(step: Any) -> Any:
        raise RuntimeError("no graph today\nsecond line")

    assert captured_step(run, failing) == "no graph today"
    one, other = iterated(plain, 3), iterated(run, 3)
    assert one[0] == other[0]


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@pytest.mark.parametrize("method", METHODS)
def test_a_cuda_graph_does_what_a_plain_iteration_does(method: str, tmp_path: Path) -> None:
    settings = [f"method={method}", *NEEDS.get(method, []), "logging.every=12"]
    plain, captured = (run_under_way(tmp_path, *settings, device="cuda") for _ in range(2))
    step = captured_step(captured)
    assert callable(step), step
    (_, ours), (_, theirs) = iterated(plain, 12), iterated(captured, 12, step)
    for one, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-3, atol=1e-5)
    captured.clock.settle()
    assert captured.clock.seconds["model"] > 0
