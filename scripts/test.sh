#!/usr/bin/env bash
# Sets up .venv with what the tests need and passes them: the fast part (lint, types, imports, unit) first.
#   scripts/test.sh          everything
#   scripts/test.sh fast     without the tests that train
set -euo pipefail
. "$(dirname "$0")/environment.sh"

make_environment own
cd "$here"
"$PY" -m pip install -q -c constraints.txt 'torch==2.13.0'
"$PY" -m pip install -q -c constraints.txt -e '.[dev]'
install_quickstart_input
export PATH="$venv/bin:$PATH" VIRTUAL_ENV="$venv"
unset PYTHONPATH LD_LIBRARY_PATH

ruff check .
ruff format --check .
mypy
lint-imports
python -m pytest -q -n 2 -m "not train" --cov --cov-report= "${@:2}"
if [ "${1:-all}" != fast ]; then
    python -m pytest -q -n 2 --dist loadfile -m train --cov --cov-append --cov-report= "${@:2}"
    # Last, and gone afterwards: where DeepSpeed is, transformers imports it at each save.
    "$PY" -m pip install -q -c constraints.txt -e '.[deepspeed]'
    python -m pytest -q tests/parallel/test_deepspeed.py --cov --cov-append --cov-report=
    "$PY" -m pip uninstall -q -y deepspeed
fi
python -m coverage report --skip-covered --fail-under="${COVERAGE_FLOOR:-70}" | tail -n 40
