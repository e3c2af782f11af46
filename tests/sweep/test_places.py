"""How many runs go side by side."""

from pathlib import Path
from typing import Any

import pytest
import torch

from robustmd.sweep import places as module
from robustmd.sweep.places import places_of, processes

ONE_THREAD = {"OMP_NUM_THREADS": "1"}


@pytest.fixture
def cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "cores", lambda: 4)
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)


@pytest.mark.usefixtures("cores")
@pytest.mark.parametrize(
    ("runs", "n_jobs", "places"), [(9, None, 4), (2, None, 2), (9, 6, 6), (9, 1, 1), (1, 6, 1)]
)
def test_one_a_core_unless_asked(runs: int, n_jobs: int | None, places: int) -> None:
    found = places_of("cpu", runs, n_jobs)
    assert len(found) == places
    assert places == 1 or found == [ONE_THREAD] * places


@pytest.mark.usefixtures("cores")
def test_one_after_another_on_windows_and_a_line_says_so(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(module.sys, "platform", "win32")
    assert places_of("cpu", 9, 4) == [{}]
    line = "runs go one after another on Windows; side by side: hydra/launcher=joblib\n"
    assert capsys.readouterr().err == line
    assert places_of("cpu", 1) == places_of("cpu", 9, 1) == [{}]
    assert capsys.readouterr().err == ""


@pytest.mark.usefixtures("cores")
def test_every_gpu_has_its_run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(module, "DEVICES", tmp_path)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)

    def devices(*given: Any) -> list[str]:
        return [place["CUDA_VISIBLE_DEVICES"] for place in places_of(*given)]

    assert places_of("auto", 9) == [ONE_THREAD] * 4
    (tmp_path / "nvidiactl").touch()
    assert devices("auto", 9) == ["0", "1"]
    assert devices("auto", 9, None, 2) == ["0", "1", "0", "1"]
    assert devices("cuda:1", 9, 3) == ["1", "1", "1"]
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "5,7")
    assert devices("cuda", 9) == ["5", "7"]
    assert places_of("cpu", 2) == [ONE_THREAD] * 2


def test_a_rank_of_no_group_is_one_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RANK", "0")
    for size in ("", "1"):
        monkeypatch.setenv("WORLD_SIZE", size)
        assert processes() == 1
