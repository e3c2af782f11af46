#!/usr/bin/env bash
# bash scripts/gpu_check.sh     on a CUDA machine, in at most 4 minutes: the GPU tests, then the bench
# Results go to $OUT (default: gpu_check/): gpu_tests.txt, bench.json, bench.txt.
# PYTHON=… picks an interpreter that has the dependencies; WHEELS=FOLDER installs missing ones from there.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
out=${OUT:-gpu_check}
mkdir -p "$out"
python=${PYTHON:-python3}
if [ -n "${WHEELS:-}" ]; then
  "$python" -m pip install --quiet --no-index --no-deps --find-links "$WHEELS" hydra-core omegaconf antlr4-python3-runtime
fi
"$python" -c 'import torch, sys; sys.exit(not torch.cuda.is_available())' 2>/dev/null || {
  echo "gpu_check: torch finds no CUDA device here" >&2
  exit 2
}
# The package is run from the checkout, where conf/ stands beside it and not in it.
here=$(mktemp -d)
trap 'rm -rf "$here"' EXIT
cp -r robustmd "$here/robustmd"
cp -r conf "$here/robustmd/conf"
export PYTHONPATH="$here${PYTHONPATH:+:$PYTHONPATH}"
export PYTHONSAFEPATH=1 # the checkout, where the tests lie, must not come before it
status=0
# Only the files that have GPU tests: others import what such a machine may lack.
mapfile -t files < <(grep -rl --include='test_*.py' 'mark\.gpu' tests)
timeout 110 "$python" -m pytest -m gpu "${files[@]}" 2>&1 | tee "$out/gpu_tests.txt" || status=1
timeout 120 "$python" scripts/bench.py --quick --device cuda --out "$out/bench.json" 2>&1 | tee "$out/bench.txt" || status=1
exit "$status"
