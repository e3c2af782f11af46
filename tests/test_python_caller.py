"""The caller of `robustmd.train`: his settings of torch and Hydra, his threads, what he raises."""

import json
import threading
from contextlib import AbstractContextManager
from pathlib import Path

import hydra
import pytest
import torch
from hydra.core.global_hydra import GlobalHydra
from hydra.core.hydra_config import HydraConfig
from tiny import synthetic_domains

import robustmd
from robustmd.errors import UserError


class Net(torch.nn.Sequential):
    def __init__(self) -> None:
        super().__init__(torch.nn.AvgPool2d(16), torch.nn.Flatten(), torch.nn.Linear(12, 3))


@pytest.fixture(autouse=True)
def in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def trained(*settings: str, **objects: object) -> robustmd.Run:
    short = ("method=even", "training.iterations=2", "training.batch_size=20", *settings)
    return robustmd.train(*short, **{"domains": synthetic_domains(), "model": Net, **objects})


def state() -> tuple[object, ...]:
    """What a caller may have set."""
    return (
        *(torch.is_grad_enabled(), torch.is_inference_mode_enabled()),
        *(torch.is_autocast_enabled("cpu"), torch.get_default_dtype(), torch.get_default_device()),
        *(torch.get_num_threads(), torch.get_deterministic_debug_mode()),
        *(torch.backends.cudnn.allow_tf32, torch.get_float32_matmul_precision()),
        *(torch.get_rng_state().tolist(), GlobalHydra.instance().hydra),
    )


class Set(AbstractContextManager):
    """A setting of the whole process, in a `with`."""

    def __init__(self, setter, value, before) -> None:
        self.setter, self.value, self.before = setter, value, before

    def __enter__(self) -> None:
        self.setter(self.value)

    def __exit__(self, *_: object) -> None:
        self.setter(self.before)


SETTINGS = {
    "no gradients": lambda: torch.set_grad_enabled(False),
    "inference": torch.inference_mode,
    "autocast": lambda: torch.autocast("cpu", torch.bfloat16),
    "float64": lambda: Set(torch.set_default_dtype, torch.float64, torch.float32),
    "meta": lambda: torch.device("meta"),
    "meta for good": lambda: Set(torch.set_default_device, "meta", None),
    "deterministic": lambda: Set(torch.set_deterministic_debug_mode, "warn", "default"),
    "low precision": lambda: Set(torch.set_float32_matmul_precision, "medium", "highest"),
    "threads": lambda: Set(torch.set_num_threads, 2, torch.get_num_threads()),
    "hydra": lambda: hydra.initialize(version_base=None, config_path=None),
}


@pytest.fixture(scope="module")
def alone(tmp_path_factory) -> list[float]:
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path_factory.mktemp("alone"))
        return trained("runtime.threads=1").metrics.loss.tolist()


@pytest.mark.parametrize("setting", SETTINGS.values(), ids=SETTINGS)
def test_the_callers_settings_change_nothing_and_stay(setting, alone: list[float]) -> None:
    with setting():
        before = state()
        run = trained("runtime.threads=1", "runtime.deterministic=false")
        assert state() == before
    assert run.metrics.loss.tolist() == alone


def test_a_module_made_under_other_settings_trains_or_is_refused_in_a_line() -> None:
    with torch.inference_mode():
        assert trained(model=Net()).status == "finished"
    with (
        Set(torch.set_default_dtype, torch.float64, torch.float32),
        pytest.raises(UserError, match=r"^the model fails for float32"),
    ):
        trained(model=Net())
    with torch.device("meta"), pytest.raises(UserError, match="on the device meta"):
        trained(model=Net())


def test_threads_are_those_of_one_call() -> None:
    trained("runtime.threads=1", "seed=1")
    with Set(torch.set_num_threads, 2, torch.get_num_threads()):
        environment = json.loads((trained("seed=2").path / "environment.json").read_text())
    assert environment["threads"] == 2


def test_within_a_hydra_app_and_in_two_threads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs: list[robustmd.Run] = []

    @hydra.main(version_base=None, config_path=str(tmp_path))
    def app(_: object) -> None:
        threads = [
            threading.Thread(target=lambda seed=seed: runs.append(trained(f"seed={seed}")))
            for seed in (1, 2)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        runs.append(trained("seed=3"))
        assert HydraConfig.get().job.name

    monkeypatch.setattr("sys.argv", ["app.py"])
    app()
    assert sorted(run.config["seed"] for run in runs) == [1, 2, 3]


@pytest.mark.parametrize(("at", "checkpoints"), [(0, 1), (1, 1)])
def test_what_on_measure_raises_interrupts_the_run(tmp_path: Path, at: int, checkpoints) -> None:
    def stop(iteration: int, measures: object) -> None:
        if iteration == at:
            raise LookupError("enough")

    with pytest.raises(LookupError, match="enough"):
        trained("evaluation.every=1", on_measure=stop)
    (path,) = tmp_path.glob("outputs/*/*/*/*/")
    run = robustmd.load_run(path)
    assert run.status == "interrupted"
    assert len([*path.glob("checkpoints/*")]) == checkpoints
    assert trained("evaluation.every=1").summary["notes"][-1] == f"resumed after iteration {at}"


def test_labels_may_be_tokens() -> None:
    x = torch.randint(9, (40, 4), generator=torch.Generator().manual_seed(0))
    arrays = x[:30], x[:30] % 3, x[30:], x[30:] % 3

    def loss(outputs: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.cross_entropy(outputs.mT, labels, reduction="none").mean(1)

    def model() -> torch.nn.Module:
        return torch.nn.Sequential(torch.nn.Embedding(9, 8), torch.nn.Linear(8, 3))

    domains = {"a": arrays, "b": arrays}
    run = trained(domains=domains, model=model, loss=loss)
    assert "accuracy" not in run.summary["final"]["test"]["a"]
    assert run.predict(x).shape == (40, 4, 3)
    with pytest.raises(UserError, match="cross_entropy: is of classes"):
        trained(domains=domains, model=model)
