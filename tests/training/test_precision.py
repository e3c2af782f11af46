"""runtime.precision: what it computes, what auto takes, and that it is part of a run's identity."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from tiny import composed, summary

from robustmd.config.identity import config_hash, number_changing
from robustmd.config.settings import as_dict
from robustmd.errors import UserError
from robustmd.training import records
from robustmd.training.learner import InPrecision
from robustmd.training.records import resolve_precision

CPU = torch.device("cpu")


def test_bf16_rounds_and_answers_in_float32() -> None:
    model = torch.nn.Linear(64, 4)
    images = torch.randn(32, 64, generator=torch.Generator().manual_seed(0))
    exact, rounded = (InPrecision(model, name)(images) for name in ("fp32", "bf16"))
    assert torch.equal(exact, model(images))
    assert rounded.dtype == torch.float32
    assert not torch.equal(rounded, exact)
    torch.testing.assert_close(rounded, exact, atol=0.05, rtol=0.0)


@pytest.mark.parametrize(
    ("flags", "taken"), [("fpu avx512_bf16", "bf16"), ("amx_bf16 fpu", "bf16"), ("avx512f", "fp32")]
)
def test_auto_takes_bf16_where_the_cpu_is_fast_at_it(
    flags: str, taken: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cpuinfo = tmp_path / "cpuinfo"
    cpuinfo.write_text(f"model name : x\nflags : {flags}\n")
    monkeypatch.setattr(records, "Path", lambda _: cpuinfo)
    assert resolve_precision("auto", CPU) == taken


def test_tf32_is_refused_where_there_is_none() -> None:
    with pytest.raises(UserError, match=r"runtime.precision=tf32: only CUDA"):
        resolve_precision("tf32", CPU)


def test_fp32_is_no_part_of_the_identity_and_bf16_is() -> None:
    config = composed()
    plain = number_changing(as_dict(config))
    assert "runtime" not in plain
    other = replace(config, runtime=replace(config.runtime, precision="bf16"))
    assert config_hash(number_changing(as_dict(other))) != config_hash(plain)
    before_it_was_a_key = as_dict(config)
    del before_it_was_a_key["runtime"]["precision"]
    assert number_changing(before_it_was_a_key) == plain


def test_a_run_records_what_auto_took(
    train: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(records, "_has_fast_bf16", lambda device: True)
    outcome = train("runtime.precision=auto")
    assert outcome.status == "finished"
    assert "precision: bf16" in (outcome.directory / "config.yaml").read_text()
    losses = summary(outcome.directory)["final"]["train"]
    exact = train()
    assert exact.directory != outcome.directory
    fp32 = summary(exact.directory)["final"]["train"]
    for name in losses:
        assert losses[name]["loss"] != fp32[name]["loss"]
        assert losses[name]["loss"] == pytest.approx(fp32[name]["loss"], rel=0.1)
