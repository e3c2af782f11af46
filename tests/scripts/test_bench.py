"""scripts/bench.py: one quick pass, the other checkout beside it, and its mistakes."""

import importlib.util
import json
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parent.parent.parent


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    spec = importlib.util.spec_from_file_location("bench", ROOT / "scripts" / "bench.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    small = (32, 20, ["backbone=convnet", "backbone.width=0.05"])
    monkeypatch.setattr(module, "WORKLOADS", {"small": small})
    monkeypatch.setattr(module, "RUNS", {"convnet": (40, 20)})
    return module


def test_a_quick_pass_times_every_contender(bench: ModuleType, tmp_path: Path) -> None:
    bench.main(["--quick", "--device", "cpu", "--out", str(tmp_path / "bench.json")])
    result = json.loads((tmp_path / "bench.json").read_text())
    found = result["comparisons"]["small: ms an iteration"]
    assert all(found["medians"][name] > 0 for name in ("bare", "even", "opt", "ot"))
    for ratio in found["ratios"].values():
        assert ratio["low"] <= ratio["median"] <= ratio["high"]
    assert result["environment"]["device"] == "cpu"


@pytest.mark.slow
def test_another_checkout_is_measured_beside_this_one(bench: ModuleType, tmp_path: Path) -> None:
    out = tmp_path / "beside.json"
    bench.main(["--quick", "--device", "cpu", "--beside", str(ROOT), "--out", str(out)])
    comparisons = json.loads(out.read_text())["comparisons"]
    assert [*comparisons] == [f"convnet: {quantity}" for quantity in bench.QUANTITIES]
    assert all(of["ratios"]["this / other"]["median"] > 0 for of in comparisons.values())


def test_the_interval_is_that_of_the_binomial_ranks(bench: ModuleType) -> None:
    """n = 20: ranks 6 and 15 of the sorted ratios hold the median with 95.9 % (sign test)."""
    ratio = bench.paired_ratio([*range(1, 21)], [1] * 20)
    assert ratio == {"median": 10.5, "low": 6.0, "high": 15.0, "rounds": 20}


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["--out", "no/folder/bench.json"], "there is no folder no/folder; make it first"),
        (["--device", "tpu"], "runtime.device=tpu: no such device on this machine"),
        (["--beside", "docs"], "--beside docs: must be a checkout"),
    ],
)
def test_a_mistake_is_one_line(
    bench: ModuleType, capsys: pytest.CaptureFixture[str], arguments: list[str], line: str
) -> None:
    with pytest.raises(SystemExit) as end:
        bench.main(arguments)
    assert end.value.code == 2
    assert line in capsys.readouterr().err.splitlines()[-1]
