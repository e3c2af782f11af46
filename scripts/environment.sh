# Sourced by demo.sh and test.sh: goes to the repository and makes its virtual environment, once.
# PYTHON names the interpreter (3.10 or newer) to make it with.
cd "$(dirname "${BASH_SOURCE[0]}")/.."
PYTHON=${PYTHON:-python3}
"$PYTHON" -c 'import sys; sys.exit(sys.version_info < (3, 10))' || {
  echo "robustmd needs Python 3.10 or newer; $("$PYTHON" --version 2>&1) found. Set PYTHON=/path/to/python3.x" >&2
  exit 2
}
# The stamp is the state of pyproject.toml that was installed: another one is installed anew.
stamp=.venv/robustmd-installed
if ! cmp -s pyproject.toml "$stamp"; then
  echo "== making .venv (PyTorch is large: minutes on a slow line)"
  [ -x .venv/bin/python ] || "$PYTHON" -m venv .venv
  .venv/bin/python -m pip install --quiet --editable '.[dev]'
  cp pyproject.toml "$stamp"
fi
