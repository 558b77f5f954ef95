#!/usr/bin/env bash
# Sets up .venv with what the tests need and passes them: the fast part (lint, types, imports, unit) first.
#   scripts/test.sh                everything but `long` and `deepspeed`
#   scripts/test.sh fast           that, without the tests that train
#   scripts/test.sh long           hangs and bottlenecks staged with real waits, and what takes minutes: on a machine that does nothing else
#   scripts/test.sh deepspeed      ZeRO 1, 2 and 3: installs DeepSpeed into .venv and takes it out again
set -euo pipefail
. "$(dirname "$0")/environment.sh"

part=${1:-all}
make_environment own
cd "$here"
"$PY" -m pip install -q -c constraints.txt 'torch==2.13.0'
"$PY" -m pip install -q -c constraints.txt -e '.[dev]'
install_quickstart_input
export PATH="$venv/bin:$PATH" VIRTUAL_ENV="$venv"
unset PYTHONPATH LD_LIBRARY_PATH

case $part in
all | fast) ;;
long) exec python -m pytest -q -m long "${@:2}" ;;
deepspeed)
    # Gone afterwards: where DeepSpeed is, transformers imports it at each save.
    trap '"$PY" -m pip uninstall -q -y deepspeed' EXIT
    "$PY" -m pip install -q -c constraints.txt -e '.[deepspeed]'
    python -m pytest -q tests/parallel/test_deepspeed*.py "${@:2}"
    exit
    ;;
*)
    say "no part is called $part: fast, long, deepspeed, or nothing for all"
    exit 2
    ;;
esac

ruff check .
ruff format --check .
mypy
lint-imports
# Many tests wait for processes of theirs: more of them than cores run at a time.
python -m pytest -q -n 4 -m "not train and not long" --cov --cov-report= "${@:2}"
python -m coverage report --skip-covered --fail-under="${COVERAGE_FLOOR:-70}" | tail -n 40
if [ "$part" = all ]; then
    python -m pytest -q -n 3 --dist loadfile -m "train and not long" "${@:2}"
fi
