"""`robustmd theory --out report`: arguments and what they do. Light until it runs."""

from collections.abc import Sequence

from robustmd.studies.command import finish, say, seeds_of, study_parser, workers_of

WRITES = """\
writes REPORT/theory/: the regret bound against the constant c (PNG, PDF, CSV), and the measured
convergence beside the proved rates (table in Markdown, LaTeX and CSV, figure in PNG and PDF, every
run's values in runs.csv). docs/theory.md says how to read them. Every L2 and KL run's regret is
compared with its proved bound; exit code 1 if one exceeds it. Minutes: one process a core.
"""


def main(arguments: Sequence[str]) -> int:
    """Runs the study and prints what came out; 1 where a regret exceeds its bound, else 0.

    Raises:
        UserError: --seeds out of range, or the folder cannot be written.
    """
    parser = study_parser(
        "theory",
        "The paper's convergence rates and regret bound, measured.",
        WRITES,
        seeds="default: 20",
        quick="T up to 1,000 in place of 100,000: seconds, too short for the rates to show",
    )
    args = parser.parse_args(list(arguments))
    seeds = seeds_of(args, quick=20)
    # torch, scipy and matplotlib take seconds to load: not for --help
    from robustmd.studies.theory.study import write_study  # noqa: PLC0415

    study = write_study(args.out, seeds, quick=args.quick, workers=workers_of(args), say=say)
    say(f"regret bound: {study.curve.summary()}")
    broken = study.broken_assumptions()
    say("σ, γ and R bounded what every run met" if not broken else "assumptions exceeded:")
    for line in broken:
        say(f"  {line}")
    violations = study.regret_violations()
    checks = study.regret_checks()
    say(f"regret at most its bound at μ_obs in {checks - len(violations)} of {checks} runs")
    return finish(violations, args.out / "theory")
