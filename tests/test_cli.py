"""The command as a user types it: light help, one-line errors, exit codes, sweeps."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from PIL import Image
from tiny import TINY

from robustmd import cli


@pytest.fixture
def robustmd(
    tmp_path: Path,
    prepared_cache: Path,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
):
    """Runs the command in an empty folder and this process; returns its exit code and output."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ROBUSTMD_CACHE", str(prepared_cache))

    def go(*arguments: str) -> subprocess.CompletedProcess[str]:
        code = cli.main(arguments)
        return subprocess.CompletedProcess(arguments, code, *capfd.readouterr())

    return go


def test_a_sweep_leaves_its_runs_and_nothing_else(
    robustmd, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    for name in ("1", "2", "3", "1e5"):
        for gray in range(0, 200, 20):
            image = tmp_path / "own" / name / f"{gray // 100}" / f"{gray}.png"
            image.parent.mkdir(parents=True, exist_ok=True)
            Image.new("RGB", (32, 32), (gray,) * 3).save(image)
    done = robustmd(
        "train", "-m", "jobs=1", "data=folder", f"data.root={tmp_path}/own", "method=individual",
        "method.domain=1,0,3,1e5", 'paths.outputs="~/x"', "training.iterations=1", *TINY,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("not trained again") == 1
    assert "method.domain=0: no domain is called so; by index it is 1" in done.stdout
    found = [json.loads(p.read_text()) for p in tmp_path.glob("home/x/*/*/*/*/summary.json")]
    assert {domain for run in found for domain in run["weights"]} == {"1", "3", "1e5"}
    assert {path.name for path in tmp_path.iterdir()} == {"home", "own"}
    assert [path.name for path in (tmp_path / "home").iterdir()] == ["x"]
    assert [path.name for path in (tmp_path / "home" / "x").iterdir()] == ["folder"]


def test_help_is_light() -> None:
    code = (
        "import sys\nfrom robustmd.cli import COMMANDS, main\n"
        "helps = [[name, '--help'] for name in COMMANDS if name != 'train']\n"
        "for words in ([], ['--version'], *helps):\n"
        "    try: main(words)\n    except SystemExit: pass\n"
        "print([m for m in ('torch','hydra','pandas','matplotlib','numpy') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


def test_help_names_every_command_and_three_to_start_with(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert cli.main([]) == 0
    text = capsys.readouterr().out
    assert all(f"  {name}" in text for name in cli.COMMANDS)
    assert sum(line.startswith("  robustmd ") for line in text.splitlines()) == 3


def test_the_help_of_train_has_a_line_for_every_key(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["train", "method=topk", "--help"]) == 0
    printed = capsys.readouterr().out
    assert all(f"\n  {key} " in printed for key in ("method.k", "training.betas", "jobs"))
    assert "hydra." not in printed


def test_an_unknown_command_is_a_line_and_code_2(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["trian"]) == 2
    assert "no command 'trian'; did you mean train? Commands: train, " in capsys.readouterr().err


def test_a_bug_of_ours_is_a_traceback_and_code_1(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("robustmd.report.write.report", lambda **_: 1 // 0)
    assert cli.main(["report"]) == 1
    assert "Traceback" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["runs", "report"])
def test_a_name_that_no_file_can_have_is_one_line(
    capsys: pytest.CaptureFixture[str], command: str
) -> None:
    assert cli.main([command, "a" * 5000]) == 2
    (said,) = capsys.readouterr().err.splitlines()
    assert said.endswith("a…: a longer name than files can have here")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["training.iteratons=5"], "training.iteratons: no such key; did you mean"),
        (["+training.iteratons=5"], "training.iteratons: no such key; did you mean"),
        (["method=optt"], "method=optt: no such option; allowed: afl, best_response, cvar"),
        (["-m", "hydra/launcher=best"], "hydra/launcher=best: no such option; allowed: basic, "),
        (["data=digit"], "digits_typed, folder, handwritten_few"),  # without from_python
        (["backbone=resnet50"], "a library's by its name, as backbone=timm backbone.model=NAME"),
        (["method=even", "method.lam=0.1"], "method.lam: no such key for method=even"),
        (["method.lam=0"], "method.lam=0: must be a number > 0"),
        (["metod=opt"], "metod: no such key; did you mean method?"),
        (["lam=0.1"], "lam: no such key; did you mean method.lam?"),
        (["training.lr=0.1"], "training.lr: no such key; did you mean training.learning_rate?"),
        (["training=3"], "training=3: must be a group of keys"),
        (["data={a:1}"], "data={a:1}: data takes the name of one option, as data=NAME"),
        (["method.prior={a:1}"], "method.prior={'a': 1}: must be null or a distribution over"),
        (
            ["data=folder", "data.unseen={a:1}"],
            "data.unseen={'a': 1}: must be a list of domains' names",
        ),
        (["a", "b="], "a: is no setting; a setting is key=value"),
        (["data.root=/tmp/é"], "'key=\"value\"'"),
        (["--foo"], "unrecognized arguments: --foo; robustmd train --help says more"),
        (["-m", "seed=0,1", "--cfg", "job"], "--cfg: shows the config of one run"),
        (["runtime.device=cuda:99"], "no such device on this machine"),
        (["paths.outputs=${HOME}/o"], "paths.outputs: Interpolation key 'HOME' not found"),
        (["method.lam=" + "9" * 400], "method.lam: too large a number"),
        (["training.iterations=" + "9" * 5000], "a number has too many digits"),
        (["runtime.threads=99999999999"], "a whole number >= 1, at most 1024"),
        (["method=" + "a" * 5000], "a…: no such option; allowed: afl, best_response"),
        (["~training.iterations"], "no key can be taken away; give it a value"),
        (["data.unseen=[[a]]"], "data.unseen=[['a']]: must be a list of domains' names"),
        (["seed=0,1"], "seed=0,1: several values are a sweep, one run each: write -m"),
        (["method.lam=choice(0.1,1)"], "several values are a sweep, one run each: write -m"),
        (["-m", "method.lam=interval(0.1,1)"], "interval(0.1,1): an interval takes a sweeper"),
    ],
)
def test_a_mistake_is_one_line_and_code_2_and_leaves_nothing(
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    arguments: list[str],
    words: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert cli.main(["train", *arguments]) == 2
    said = capsys.readouterr().err
    assert words in said
    assert len(said.splitlines()) == 1
    assert len(said) < 1000
    assert not list(tmp_path.iterdir())


SWEEPS = {
    "rows: []\nhydra:\n  sweeper: {rows: []}": "hydra.sweeper is no more; write sweep:",
    "rows: 5": "sweep.rows=5: must be a list of {key: value}",
    "rows: [[method]]": "must be a list of {key: value}",
    "params: 7": "sweep.params=7: must be {key: values}",
    "tune: 4": "sweep.tune=4: must be {configurations",
    "tune: {configurations: many, seed: 0}": "must be {configurations: 1 to 10000",
    "tune: {configurations: 1000000000, seed: 0}": "must be {configurations: 1 to 10000",
    "rows: [{method: even}]\n  params: {method: 'even,opt'}": "method: both sweep.rows",
    "lines: []": "must be a group of rows, params, tune, leave_one_out",
}


@pytest.mark.parametrize(("sweep", "words"), SWEEPS.items())
def test_a_sweep_that_means_nothing_is_one_line(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, sweep: str, words: str
) -> None:
    (tmp_path / "experiment").mkdir()
    text = f"# @package _global_\nsweep:\n  {sweep}\n"
    (tmp_path / "experiment" / "own.yaml").write_text(text)
    assert cli.main(["train", "--config-dir", str(tmp_path), "experiment=own", "--list"]) == 2
    (said,) = capsys.readouterr().err.splitlines()
    assert words in said


@pytest.mark.parametrize(
    ("arguments", "folders"),
    [
        (["method=even", "seed=3"], ["digits_mini/even"]),
        (
            ["method=best_response,oracle", "-m", "method.every=2"],
            ["digits_mini/best_response", "digits_mini/oracle"],
        ),
        (
            [
                *("experiment=demo", "seed=3", "training.iterations=70"),
                *("hydra/launcher=joblib", "hydra.launcher.n_jobs=2"),  # of the runs, not the list
            ],
            [f"digits_typed/{name}" for name in ("even", "individual", "individual", "opt")],
        ),
    ],
)
def test_what_would_run_is_listed(
    capsys: pytest.CaptureFixture[str], arguments: list[str], folders: list[str]
) -> None:
    assert cli.main(["train", *arguments, "--list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    found = [re.fullmatch(r"(\S+)/[0-9a-f]{8}/seed=[03] .*", line) for line in lines]
    assert sorted(match[1] for match in found if match) == folders


@pytest.mark.parametrize(
    ("code", "given", "words"),
    [
        ("import sys; sys.exit(7)", "imports=[own_code]", "cannot be imported: SystemExit: 7"),
        ("1/0", "imports=[own_code]", "ZeroDivisionError: division by zero (own_code.py, line 1)"),
        ("", "imports=own_code", "imports=own_code: must be a list of modules"),
        ("", "imports=[[own_code]]", "must be a list of modules"),
        ("", "imports=[nowhere_to_be]", "there is no module nowhere_to_be"),
        ("", "imports=[code]", "/code.py; rename your file"),
    ],
)
def test_own_code_that_does_not_come_in_is_one_line(
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    code: str,
    given: str,
    words: str,
) -> None:
    (tmp_path / "own_code.py").write_text(code)
    (tmp_path / "code.py").write_text("")  # Python has a module of that name
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "own_code", raising=False)
    assert cli.main(["train", given, "--list"]) == 2
    (said,) = capsys.readouterr().err.splitlines()
    assert words in said


def test_a_working_folder_that_has_gone_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    assert cli.main(["explain", "seed"]) == 2
    assert "the working folder has been removed" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["runs", "report", "evaluate", "data"])
def test_a_config_directory_brings_code_into_training_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    (tmp_path / "experiment").mkdir()
    (tmp_path / "experiment" / "own.yaml").write_text("imports: [canary_code]")
    (tmp_path / "canary_code.py").write_text("")
    monkeypatch.syspath_prepend(tmp_path)
    assert cli.main([command, "x", f"--config-dir={tmp_path}", "experiment=own"]) == 2
    assert "canary_code" not in sys.modules


def test_a_sweep_goes_on_after_a_failed_run_and_trains_nothing_twice(
    robustmd, tmp_path: Path
) -> None:
    command = ["train", "-m", "jobs=1", "training.learning_rate=0.01,1e37,0.02,1e36"]
    command += ["training.iterations=3", *TINY]
    done = robustmd(*command)
    assert done.returncode == 1
    assert "[run 4 of 4]" in done.stdout
    assert len(list((tmp_path / "outputs").glob("*/*/*/seed=*"))) == 4
    listed = done.stderr.partition("2 runs did not finish:")[2]
    assert "training.learning_rate=1e+37" in listed
    assert "training.learning_rate=1e+36" in listed
    again = robustmd(*command)
    assert (again.returncode, again.stdout.count("not trained again")) == (1, 2)


def test_evaluate_agrees_with_the_runs_summary(robustmd, tmp_path: Path) -> None:
    robustmd("train", "training.iterations=1", *TINY)
    (run,) = (tmp_path / "outputs").glob("*/*/*/seed=0")
    done = robustmd("evaluate", str(run), "runtime.threads=1")
    assert done.returncode == 0, done.stderr
    assert "agrees with summary.json" in done.stdout
    summary = json.loads((run / "summary.json").read_text())
    summary["final"]["test"]["printed"]["loss"] += 0.1
    (run / "summary.json").write_text(json.dumps(summary))
    done = robustmd("evaluate", str(run))
    assert done.returncode == 1
    assert "differs from summary.json in: test/printed" in done.stdout


def test_evaluates_mistakes_are_lines(robustmd, tmp_path: Path) -> None:
    done = robustmd("evaluate", "nowhere")
    assert done.returncode == 2
    assert done.stderr == (
        "robustmd: nowhere: no run directory (it has no readable config.yaml); "
        "`robustmd runs FOLDER` lists those in a folder\n"
    )
    done = robustmd("evaluate")
    assert done.returncode == 2
    assert "arguments are required: RUN_DIR; robustmd evaluate --help" in done.stderr
    (tmp_path / "config.yaml").write_text("seed: 0")
    done = robustmd("evaluate", ".", "seed=1")
    assert done.returncode == 2
    assert "evaluate takes key=value with runtime, paths" in done.stderr
    (tmp_path / "seed=1").mkdir()
    done = robustmd("evaluate", ".", "seed=1")  # as a shell makes of seed=*
    assert done.returncode == 2
    assert done.stderr == (
        "robustmd: seed=1: a folder more than evaluate takes; call it for each run\n"
    )
