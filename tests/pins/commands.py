"""Pinned commands: what `--list` prints, how mistakes end, what reports hold, public names."""

import contextlib
import importlib.util
import io
import shlex
import tempfile
from pathlib import Path
from typing import Any

from robustmd import cli

ROOT = Path(__file__).parents[2]
PUBLISHED = ROOT / "outputs" / "published"
SMALL = [
    "experiment=demo",
    "experiment=demo_plateau",
    "experiment=demo_turned",
    "experiment=lambda_l2",
    "experiment=many_domains",
    "experiment=noise_4_8_12",
    "experiment=leave_one_out data=typed_turned",
    "-m method=opt,even method.prior=[0.3,0.7],[0.5,0.5] seed=0,1",
    "method=individual method.domain=printed data=digits_mini seed=3",
]
LISTS = [
    *SMALL,
    "experiment=digits_table",
    "experiment=lambda_ot",
    "experiment=lambda_ot data=pets",
    "experiment=noise_10_20_30",
    "experiment=noise_10_20_30 data=pets_noise",
    "experiment=pets_table",
    "experiment=running_time",
    "experiment=static_front",
]
FAIR = [
    "experiment=mini_fair",
    "experiment=digits_fair",
    "experiment=fair",
    "experiment=fair data=typed_turned",
    "experiment=fair data=typed_few",
    "experiment=fair data=handwritten_few",
]
SMALL_REPORTS = ["noise_10_20_30", "digits_table"]
REPORTS = [
    *SMALL_REPORTS,
    *("demo", "demo_20_seeds", "demo_plateau", "demo_recipe", "lambda_l2", "running_time"),
    "static_front",
]
NAMES = ["robustmd", "robustmd.adversary"]


def run(arguments: list[str]) -> tuple[int, str, str]:
    """Exit code, standard output and errors of a command in this process."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            code = cli.main(arguments)
        except SystemExit as ended:  # argparse's
            code = int(ended.code or 0)
    return code, out.getvalue(), err.getvalue()


def listing(case: str) -> list[str]:
    """The lines of `robustmd train … --list`: directory with hash, overrides."""
    code, out, err = run(["train", *case.split(), "--list"])
    assert code == 0, err
    return out.splitlines()


def mistakes() -> list[tuple[int, str, str]]:
    """Rows of mistakes.txt: exit code, the key or value that the message names, the command."""
    lines = (Path(__file__).parent / "data" / "mistakes.txt").read_text("utf-8").splitlines()
    rows = [line.split(" ", 2) for line in lines if line and not line.startswith("#")]
    return [(int(code), key, command) for code, key, command in rows]


def mistake(command: str) -> tuple[int, str]:
    """Exit code and message of a command that has a mistake."""
    code, _, err = run(shlex.split(command))
    return code, err


def report(study: str) -> dict[str, list[str]]:
    """Lines of each CSV file that `robustmd report` writes, by its path below the report."""
    with tempfile.TemporaryDirectory() as folder:
        code, _, err = run(["report", str(PUBLISHED / study), "--out", folder, "--no-figures"])
        assert code == 0, err
        return {
            path.relative_to(folder).as_posix(): path.read_text("utf-8").splitlines()
            for path in sorted(Path(folder).rglob("*.csv"))
        }


def fair_tables(_: str) -> list[str]:
    """What scripts/fair_tables.py prints."""
    spec = importlib.util.spec_from_file_location("fair_tables", ROOT / "scripts/fair_tables.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        module.main(PUBLISHED / "fair")
    return out.getvalue().splitlines()


def names(module: str) -> dict[str, Any]:
    return dict.fromkeys(sorted(importlib.import_module(module).__all__), True)
