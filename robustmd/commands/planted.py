"""`robustmd planted --out report`: arguments and what they do. Light until it runs."""

from collections.abc import Sequence

from robustmd.studies.command import finish, say, seeds_of, study_parser, workers_of

WRITES = """\
writes REPORT/planted/: suboptimality, excess and noise (PNG, PDF), planted.md and planted.csv (the
tables), and runs.csv (every run). docs/planted.md says what the numbers are and what they show. The
optimum comes from a solver with a certificate; exit code 1 if a run is below it. Minutes: one
process a core.
"""


def main(arguments: Sequence[str]) -> int:
    """Runs the study and prints what came out; 1 where a run is below the optimum, else 0.

    Raises:
        UserError: --seeds out of range, or the folder cannot be written.
    """
    parser = study_parser(
        "planted",
        "Every method on synthetic domains whose best worst case is known.",
        WRITES,
        seeds="default: 20; with --quick 2",
        quick="15 iterations in place of 1,000 and the ends of each factor: to see that it works",
    )
    args = parser.parse_args(list(arguments))
    seeds = seeds_of(args, quick=2)
    from robustmd.studies.planted.study import write_study  # noqa: PLC0415

    results = write_study(args.out, seeds, quick=args.quick, workers=workers_of(args), say=say)
    say(f"{results.num_runs:,} runs; optima exact within {results.largest_error:.0e}")
    if results.diverged:
        say(f"{len(results.diverged)} runs diverged and could not be chosen")
    return finish(results.violations(), args.out / "planted")
