"""`robustmd bench`: its mistakes, and one quick pass whose file has all that the issue names."""

import json
from pathlib import Path

import pytest

from robustmd.backbones.alexnet import AlexNet
from robustmd.bench import study
from robustmd.bench.contenders import Workload
from robustmd.cli import main


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--threads", "0"], "--threads 0: must be a whole number >= 1"),
        (["--out", "no/such/folder/bench.json"], "there is no folder no/such/folder"),
        (["--device", "tpu"], "--device tpu: must be auto, cpu"),
    ],
)
def test_mistakes_are_one_line(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["bench", *arguments]) == 2
    error = capsys.readouterr().err
    assert said in error
    assert error.count("\n") == 1


def test_a_quick_pass(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    small = Workload("small", AlexNet(width=0.05), 32, 200)
    monkeypatch.setattr(study, "workloads", lambda device: (small,))
    seconds = {"help": 0.1, "first_cold": 2.0, "first_warm": 1.0}  # processes
    monkeypatch.setattr(study, "startup_seconds", lambda: seconds)
    monkeypatch.setattr(study, "update_microseconds", lambda device: {"opt": {2: 70.0}})
    file = tmp_path / "bench.json"
    assert main(["bench", "--quick", "--device", "cpu", "--out", str(file)]) == 0
    result = json.loads(file.read_text())
    loops = result["workloads"]["small"]
    assert set(loops["milliseconds"]) >= {"bare", "even", "opt", "ot", "naive"}
    assert set(loops["ratios"]) >= {"opt/bare", "opt/even", "ot/even", "naive/opt"}
    assert loops["images_per_second"] == pytest.approx(2e5 / loops["milliseconds"]["opt"])
    assert set(result["growth"]["milliseconds"]) == {"2", "10", "100"}
    assert set(result["many"]["milliseconds"]) == {"10", "1000"}
    assert set(result["many"]["ratios"]) == {"1000/10"}
    measured = result["measurement"]
    assert measured["images_per_second"] > 0
    assert measured["ratio"]["low"] <= measured["ratio"]["median"] <= measured["ratio"]["high"]
    assert result["seconds"] == seconds
    assert result["peak_bytes"] > 2**20
    out = capsys.readouterr().out
    assert "opt/bare" in out
    assert "peak memory" in out
