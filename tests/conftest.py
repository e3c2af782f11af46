"""Fixtures that several rooms share."""

import csv
import io
import json
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import hypothesis
import pytest
import yaml

# Before torch is loaded: on the tests' small tensors a second thread only waits for the first, and
# on a busy machine for long. Holds for the commands that tests start as well.
os.environ.setdefault("OMP_NUM_THREADS", "1")


# A busy machine draws slowly and takes long for an example, and nothing is wrong.
BUSY = hypothesis.settings(deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow])
# A user's run is green or red by the code alone; a run of slow tests seeks new examples.
hypothesis.settings.register_profile("same", BUSY, derandomize=True)
hypothesis.settings.register_profile("random", BUSY, derandomize=False, print_blob=True)

Pair = tuple[float, float]


def pytest_configure(config: pytest.Config) -> None:
    """Load the profile of property tests; --hypothesis-profile, read after this, goes first."""
    name = "random" if asks_for_slow(config.option.markexpr) else "same"
    hypothesis.settings.load_profile(name)


def asks_for_slow(expression: str) -> bool:
    """Whether pytest's -m names slow outside a "not": "slow and gpu", not "not (slow or gpu)"."""
    wanted = re.sub(r"\bnot\b\s*(\w+|\([^()]*\))", "", expression)
    return re.search(r"\bslow\b", wanted) is not None


@pytest.hookimpl(tryfirst=True)  # before -m chooses
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Property tests are among the slow ones where those are asked for, to be searched at random.

    The file that takes longest first: a file is one process's, and the others fill the other.
    """
    if asks_for_slow(config.option.markexpr):
        for item in items:
            if hypothesis.is_hypothesis_test(getattr(item, "obj", None)):
                item.add_marker("slow")
    items.sort(key=lambda item: item.path.name != "test_wheel.py")


@pytest.fixture(autouse=True)
def one_run_after_another(monkeypatch: pytest.MonkeyPatch) -> None:
    """A sweep in a test's own process starts no others, unless the test says jobs=N."""
    monkeypatch.setattr("robustmd.sweep.places.cores", lambda: 1)


@dataclass
class OutputsBuilder:
    """Writes run directories as training does, without training: see `run`."""

    root: Path

    def run(
        self,
        method: str = "even",
        seed: int = 0,
        *,
        data: str = "toy",
        train: Mapping[str, Pair] | None = None,
        test: Mapping[str, Pair] | None = None,
        also: Mapping[str, Mapping[str, Pair]] | None = None,
        curve: Sequence[Mapping[str, float]] = (),
        earlier: Sequence[Mapping[str, Mapping[str, Pair]]] = (),
        settings: Mapping[str, Any] | None = None,
        training: Mapping[str, Any] | None = None,
        iterations: int = 100,
        fingerprint: str = "f" * 64,
        folder: str = "00000000",
        extra: Mapping[str, Any] | None = None,
        sizes: Mapping[str, int] | None = None,
        constant: Sequence[str] = (),
        unseen: Sequence[str] = (),
    ) -> Path:
        """One finished run.

        `train` and `test` give each domain's final (loss, accuracy), `also` that of other splits,
        in metrics.csv alone; `curve` the training losses of earlier measurements, evenly spaced
        from iteration 0, or `earlier` whole measurements, each {split: {domain: (loss, accuracy)}},
        evenly spaced without 0; `settings` the method's keys; `training` changes training's;
        `extra` goes into summary.json last; `sizes` are the domains' examples in either split, 40
        where not given; on the test sets of the domains `constant` one class is predicted; `unseen`
        of the domains were kept out of training.
        """
        train = train or {"a": (0.5, 80.0), "b": (0.25, 90.0)}
        test = test or {domain: (loss + 0.1, acc - 5) for domain, (loss, acc) in train.items()}
        name = _folder(data), _folder(method)
        path = self.root.joinpath(*name, folder, f"seed={seed}")
        path.mkdir(parents=True)
        config = {
            "data": {"name": data, "validation": 0.0},
            "backbone": {"name": "alexnet", "width": 0.25},
            "method": {"name": method, **(settings or {})},
            "training": {"iterations": iterations, "learning_rate": 0.03, **(training or {})},
            "evaluation": {"every": 50, "examples": 20000, "predictions": True},
            "runtime": {"device": "cpu"},
            "seed": seed,
        }
        if unseen:
            config["data"]["unseen"] = list(unseen)
        (path / "config.yaml").write_text(yaml.safe_dump(config, allow_unicode=True), "utf-8")
        splits = {"train": train, "test": test, **(also or {})}
        self._metrics(path, splits, curve, earlier, iterations, sizes or {}, unseen)
        summary = _summary(config, train, test, iterations, unseen) | dict(extra or {})
        for domain in constant:
            summary["final"]["test"][domain]["constant"] = True
        (path / "summary.json").write_text(json.dumps(summary), "utf-8")
        environment = {"device": "cpu", "data_fingerprint": fingerprint}
        environment["overrides"] = [f"method={method}", f"data={data}", f"seed={seed}"]
        (path / "environment.json").write_text(json.dumps(environment), "utf-8")
        return path

    def _metrics(
        self,
        path: Path,
        final: Mapping[str, Mapping[str, Pair]],
        curve: Sequence[Mapping[str, float]],
        earlier: Sequence[Mapping[str, Mapping[str, Pair]]],
        iterations: int,
        sizes: Mapping[str, int],
        unseen: Sequence[str],
    ) -> None:
        rows: list[Iterable[object]] = []
        for i, losses in enumerate(curve):
            t = i * iterations // len(curve)
            for split in ("train", "test"):
                rows += [(t, t / 10, split, d, loss, 50.0, 20) for d, loss in losses.items()]
        for i, splits in enumerate((*earlier, final), 1):
            t = i * iterations // (len(earlier) + 1)
            for split, values in splits.items():
                for d, v in values.items():
                    examples = sizes.get(d, 40) if t == iterations else 20
                    rows.append((t, t / 10, split, d, *v, examples))
        header = "iteration,seconds,split,domain,loss,accuracy,examples"
        _write_csv(path / "metrics.csv", header, rows)
        train = {d: loss for d, (loss, _) in final["train"].items() if d not in unseen}
        weights = [(10, d, 1 / len(train), loss) for d, loss in train.items()]
        _write_csv(path / "weights.csv", "iteration,domain,weight,batch_loss", weights)


def _write_csv(path: Path, header: str, rows: Iterable[Iterable[object]]) -> None:
    with path.open("w", encoding="utf-8", newline="") as stream:
        csv.writer(stream, lineterminator="\n").writerows([header.split(","), *rows])


def summary_text(written: Any) -> str:
    """What `robustmd report` prints of a written report."""
    from robustmd.report.write import show  # loads matplotlib: not for every room

    out = io.StringIO()
    show(written, out)
    return out.getvalue()


def _folder(name: str) -> str:
    return name.replace("/", "_").strip(".") or "dots"


def _summary(
    config: Mapping[str, Any],
    train: Mapping[str, Pair],
    test: Mapping[str, Pair],
    iterations: int,
    unseen: Sequence[str],
) -> dict[str, Any]:
    trained = [domain for domain in train if domain not in unseen]
    final: dict[str, Any] = {}
    worst: dict[str, Any] = {}
    for split, values in (("train", train), ("test", test)):
        final[split] = {
            domain: {"loss": loss, "accuracy": accuracy, "examples": 40}
            for domain, (loss, accuracy) in values.items()
        }
        losses, accuracies = zip(*(values[domain] for domain in trained), strict=True)
        worst[split] = {"loss": max(losses), "accuracy": min(accuracies)}
    return {
        "status": "finished",
        "message": None,
        "data": config["data"]["name"],
        "method": config["method"]["name"],
        "seed": config["seed"],
        "domains": list(train),
        **({"trained": trained, "unseen": list(unseen)} if unseen else {}),
        "classes": ["0", "1"],
        "iterations": iterations,
        "iterations_done": iterations,
        "final": final,
        "worst": worst,
        "weights": {domain: 1 / len(trained) for domain in trained},
        "warnings": [],
        "notes": [],
    }


@pytest.fixture
def outputs(tmp_path: Path) -> OutputsBuilder:
    """An empty outputs folder to be filled with run directories."""
    root = tmp_path / "outputs"
    root.mkdir()
    return OutputsBuilder(root)


@pytest.fixture(scope="session")
def prepared_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache folder with digits_mini prepared in it, once for all tests of all processes: whoever
    comes second waits for the first and uses what it made."""
    from robustmd.domains.digits_mini import DigitsMini
    from robustmd.registry import DataFacts

    own = tmp_path_factory.getbasetemp()
    cache = (own.parent if "PYTEST_XDIST_WORKER" in os.environ else own) / "prepared"
    DigitsMini().load(DataFacts(lambda _: cache, lambda _: None))
    return cache


@pytest.fixture(scope="session")
def real_data() -> Path:
    """The folder with real files; the test is skipped where there is none."""
    folder = os.environ.get("ROBUSTMD_TEST_DATA")
    if not folder:
        pytest.skip("ROBUSTMD_TEST_DATA names no folder with MNIST/raw and svhn")
    return Path(folder)


@pytest.fixture
def one_line():
    """Check that an error is one line of a length that can be read, holding certain words."""

    def check(error, *words: str) -> None:
        text = str(error.value)
        assert "\n" not in text
        assert len(text) < 900
        for word in words:
            assert word in text

    return check
