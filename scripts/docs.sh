#!/usr/bin/env bash
# bash scripts/docs.sh     the documentation as a site: build/docs/index.html, which needs no server
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/environment.sh"
.venv/bin/python -c 'import furo, myst_parser' 2>/dev/null || .venv/bin/python -m pip install --quiet --editable '.[docs]'
.venv/bin/python -m sphinx -W --keep-going -q -b html docs build/docs
echo "build/docs/index.html"
