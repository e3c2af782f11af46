"""`robustmd theory --out report`: what it says of itself. Light until it runs."""

from robustmd.commands.study import Study

WRITES = """\
writes REPORT/theory/: the regret bound against the constant c (PNG, PDF, CSV), and the measured
convergence beside the proved rates (table in Markdown, LaTeX and CSV, figure in PNG and PDF, every
run's values in runs.csv). docs/theory.md says how to read them. Every L2 and KL run's regret is
compared with its proved bound; exit code 1 if one exceeds it. Minutes: one process on
each core.
"""
STUDY = Study(
    "theory",
    writes=WRITES,
    quick="T up to 1,000 in place of 100,000: seconds, too short for the rates to show",
)
parser, main = STUDY.parser, STUDY.main
