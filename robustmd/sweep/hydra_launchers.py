"""The runs of a sweep by Hydra's own launchers: joblib, submitit (SLURM), Ray.

A job is one override, `+job=[…]`, opaque to the launcher; it is read where it runs.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

from hydra._internal.callbacks import Callbacks
from hydra.core.plugins import Plugins
from hydra.core.utils import JobStatus
from hydra.errors import HydraException
from hydra.types import HydraContext, RunMode
from omegaconf import DictConfig
from omegaconf.errors import OmegaConfBaseException

from robustmd.config.compose import loader
from robustmd.config.plugins import CONFIG_DIR
from robustmd.config.values import hydra_value
from robustmd.errors import UserError
from robustmd.sweep.jobs import Ended, Job, run_job


def launcher_of(arguments: Sequence[str]) -> str:
    """The launcher that was typed, as hydra/launcher=joblib; "" for our own."""
    typed = [text.partition("=")[2] for text in arguments if text.startswith("hydra/launcher=")]
    return typed[-1] if typed and typed[-1] != "side_by_side" else ""


def check_launcher(name: str) -> None:
    """Raises UserError: there is no such launcher."""
    known = sorted({*loader().get_group_options("hydra/launcher"), "side_by_side"})
    if name and name not in known:
        raise UserError(
            f"hydra/launcher={name}: no such option; allowed: {', '.join(known)}; others come "
            "with an extra, as docs/clusters.md says"
        )


def launch_elsewhere(
    jobs: Sequence[Job], hydras: Sequence[str], outputs: str
) -> list[Ended | None]:
    """Run the jobs by the launcher that `hydras` (hydra/launcher=…, hydra.launcher.…=…) name.

    outputs: `paths.outputs`, which a launcher's settings may name. Returns how each ended, in
    order. Raises UserError: the launcher's settings make no config.
    """
    place = f"+paths.outputs={hydra_value(outputs)}"
    files = loader()
    try:
        config = files.load_configuration("config", [*hydras, place], RunMode.MULTIRUN)
        launcher = Plugins.instance().instantiate_launcher(
            hydra_context=HydraContext(config_loader=files, callbacks=Callbacks()),
            task_function=run_elsewhere,
            config=config,
        )
    except (HydraException, OmegaConfBaseException, ValueError) as error:
        words = str(error).partition("\n")[0]
        raise UserError(f"{' '.join(hydras)}: makes no launcher ({words})") from None
    own = os.environ.get(CONFIG_DIR, "")
    opaque = [
        [f"+job={hydra_value([own, job.number, job.total, *job.overrides])}", place] for job in jobs
    ]
    return [
        one.return_value if one.status == JobStatus.COMPLETED else Ended(1, str(one._return_value))
        for one in launcher.launch(opaque, initial_job_idx=0)
    ]


def run_elsewhere(config: DictConfig) -> Ended:
    """What a launcher calls, in whatever process: the job of its config."""
    own, number, total, *overrides = config.job
    os.environ[CONFIG_DIR] = str(own)
    return run_job(Job(int(number), int(total), list(map(str, overrides))))
