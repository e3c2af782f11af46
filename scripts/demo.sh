#!/usr/bin/env bash
# bash scripts/demo.sh     35 small runs and their report: tables and curves that make the point
# Finished runs are kept: a second call does what is missing, and nothing where nothing has changed.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/environment.sh"
made=report/.demo # the last that a call which did all has written
if [ -e "$made" ] && [ -z "${!ROBUSTMD_@}" ] &&
  [ -z "$(find "$stamp" robustmd conf outputs report -newer "$made" \
    ! -name __pycache__ ! -name '*.pyc' -print -quit)" ]; then
  echo "== nothing has changed since the last call: report/index.html (rm $made has it made again)"
  exit
fi
echo "== training: individual ×2, even, opt, on handwritten and typed digits, seeds 0-4"
.venv/bin/robustmd train experiment=demo
echo "== training: even and opt with two λ, on typed digits at six angles, seeds 0-4"
.venv/bin/robustmd train experiment=demo_turned
echo "== report"
.venv/bin/robustmd report outputs --out report
touch "$made"
cat <<'END'

Next, with your own domains (DIR/DOMAIN/CLASS/*.png, jpg, …; docs/own_data.md says more):
  .venv/bin/robustmd train -m method=even,opt data=folder data.root=DIR seed=0,1,2
  .venv/bin/robustmd report
or with other settings, or the paper's digits (fetches MNIST and SVHN):
  .venv/bin/robustmd train -m method=opt method.lam=0.1,10 seed=0,1,2
  .venv/bin/robustmd train experiment=digits_table
END
