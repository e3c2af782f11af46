"""Search for settings with Optuna: the least worst-case validation loss, with pruning.

    pip install optuna
    python tune.py            30 trials; the same command goes on with a search that was stopped

Test sets decide nothing: a trial's value is the worst domain's loss on validation images.
"""

import optuna

import robustmd

SETTINGS = ("data=digits_typed", "data.validation=0.2", "method=opt", "training.iterations=150")


def objective(trial: optuna.Trial, *settings: str) -> float:
    """The smallest worst-case validation loss [nats] of one run."""
    lam = trial.suggest_float("method.lam", 0.01, 10, log=True)
    rate = trial.suggest_float("training.learning_rate", 0.05, 2, log=True)
    best = float("inf")

    def on_measure(iteration: int, measures: dict[str, dict[str, dict[str, float]]]) -> None:
        nonlocal best
        best = min(best, max(domain["loss"] for domain in measures["val"].values()))
        trial.report(best, iteration)
        if iteration > 0 and trial.should_prune():
            raise optuna.TrialPruned

    # A finished run is found again, and measures nothing: its value comes from its table.
    run = robustmd.train(
        *SETTINGS,
        *settings,
        f"method.lam={lam:.4g}",
        f"training.learning_rate={rate:.4g}",
        on_measure=on_measure,
    )
    rows = run.metrics[run.metrics.split == "val"]
    return float(rows.groupby("iteration").loss.max().min())


def main(trials: int = 30, storage: str = "sqlite:///tune.db", *settings: str) -> optuna.Study:
    study = optuna.create_study(
        study_name="worst validation loss",
        storage=storage,
        load_if_exists=True,
        pruner=optuna.pruners.MedianPruner(n_startup_trials=5),
    )
    # A seed of its own: a search that goes on must not draw its first trials again.
    study.sampler = optuna.samplers.TPESampler(seed=len(study.trials))
    missing = max(0, trials - len(study.trials))
    study.optimize(lambda trial: objective(trial, *settings), n_trials=missing)
    return study


if __name__ == "__main__":
    best = main().best_trial
    print(f"worst validation loss {best.value:.4f} nats with {best.params}")
