#!/usr/bin/env bash
# bash scripts/mini_fair.sh [key=value …]     experiment=mini_fair in two processes of one thread each
# On 2 cores that is faster than one process with two threads. What is finished is not run again.
# regret takes f* from the individual models, so they come before it in one process.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
[ -x .venv/bin/robustmd ] && PATH="$PWD/.venv/bin:$PATH"

part() { # methods -- key=value …
  local rows=() method n
  while [ "$1" != -- ]; do
    method=$1
    shift
    for n in 0 1 2 3; do rows+=("fair/${method}_$n"); done
  done
  shift
  local row
  row=$(IFS=,; echo "${rows[*]}")
  robustmd train experiment=mini_fair runtime.threads=1 "row=$row" "$@"
}

export OMP_NUM_THREADS=1
part individual_0 individual_1 even erm opt ot kl regret optimistic vrex -- "$@" &
first=$!
status=0
part minimax best_response oracle groupdro afl term cvar topk -- "$@" || status=$?
wait "$first" || status=$?
exit "$status"
