#!/usr/bin/env bash
# bash scripts/bench_sweep.sh [settings]     8 runs of digits_mini, two of one thread at a time against
# one of two threads after another; 3 times in turn, on the machine as it is and with one core kept busy
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/environment.sh"
folder=$(mktemp -d)
busy=
trap 'rm -rf "$folder"; [ -z "$busy" ] || kill "$busy"' EXIT

seconds() { # of a sweep with these settings
  local begun=$EPOCHREALTIME
  .venv/bin/robustmd train -m method=even,opt seed=0,1,2,3 training.iterations=200 \
    paths.outputs="$(mktemp -d -p "$folder")" "$@" >"$folder/said" || { cat "$folder/said" >&2; exit 1; }
  awk "BEGIN { printf \"%.1f\", $EPOCHREALTIME - $begun }"
}

measured() { # $1: in which state the machine is; the others: settings
  local state=$1 together apart turn
  shift
  for turn in 1 2 3; do
    together=$(seconds jobs=2 runtime.threads=1 "$@")
    apart=$(seconds jobs=1 runtime.threads=2 "$@")
    awk "BEGIN { printf \"%-10s %8.1f s %8.1f s %8.2f\n\", \"$state\", $together, $apart, $together / $apart }"
  done
}

printf '%-10s %10s %10s %8s\n' "" "2 × 1" "1 × 2" ratio
measured idle "$@"
while :; do :; done &
busy=$!
measured "one busy" "$@"
