"""What `robustmd train` refuses before any run starts, and what gives way."""

from pathlib import Path

import pytest

from robustmd import cli

SHORT = ["training.iterations=5", "evaluation.every=5", "evaluation.examples=20"]


def run(*arguments: str, code: int, capsys: pytest.CaptureFixture[str]) -> tuple[str, str]:
    assert cli.main(["train", *arguments]) == code
    shown = capsys.readouterr()
    return shown.out, shown.err


def test_a_warm_up_that_a_data_set_chose_gives_way_to_a_shorter_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    said, _ = run("data=digits_typed", "method=opt", *SHORT, code=0, capsys=capsys)
    assert "training.warmup=1: a fifth of training.iterations=5; data=digits_typed comes" in said
    typed = ("data=digits_typed", *SHORT, "training.warmup=60")
    _, refused = run(*typed, code=2, capsys=capsys)
    assert "training.warmup=60: must be less than training.iterations=5" in refused


def test_a_sweep_is_checked_whole_before_its_first_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    sweep = ("-m", "method=even,opt,groupdro", "method.lam=0.3", "seed=0,1")
    _, said = run(*sweep, code=2, capsys=capsys)
    assert "4 of 6 runs cannot be, and none was begun" in said
    assert said.count("method.lam: no such key for method=even") == 1
    assert said.count("method.lam: no such key for method=groupdro") == 1
    assert not [*tmp_path.iterdir()]


@pytest.mark.parametrize("key", ["hydra.run.dir=x", "+hydra.job.name=x", "hydra/job_logging=none"])
def test_a_key_of_hydra_that_would_do_nothing_is_refused(
    key: str, capsys: pytest.CaptureFixture[str]
) -> None:
    _, said = run(key, code=2, capsys=capsys)
    assert key in said
    assert "paths.outputs=FOLDER" in said
