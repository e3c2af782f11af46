#!/usr/bin/env bash
# bash scripts/test.sh [pytest arguments]     lint, types and tests, in the project's own environment
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/environment.sh"
echo "== lint"
.venv/bin/ruff check .
.venv/bin/ruff format --check .
echo "== types"
.venv/bin/mypy
echo "== tests"
exec .venv/bin/python -m pytest -m "not slow" -n auto --dist loadfile --no-loadscope-reorder "$@"
