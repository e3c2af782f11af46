"""`robustmd planted --out report`: what it says of itself. Light until it runs."""

from robustmd.commands.study import Study

WRITES = """\
writes REPORT/planted/: suboptimality, excess and noise (PNG, PDF), planted.md and planted.csv (the
tables), and runs.csv (every run). docs/planted.md says what the numbers are and what they show. The
optimum comes from a solver with a certificate; exit code 1 if a run is below it. Minutes: one
process on each core.
"""
STUDY = Study(
    "planted",
    writes=WRITES,
    quick="15 iterations in place of 1,000 and the ends of each factor: to see that it works",
    quick_seeds=2,
)
parser, main = STUDY.parser, STUDY.main
