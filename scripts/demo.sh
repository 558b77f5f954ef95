#!/usr/bin/env bash
# Sets up .venv beside this checkout and runs the main job: check, then the quickstart run, then where the report lies.
set -euo pipefail
. "$(dirname "$0")/environment.sh"

make_environment system
cd "$here"
"$PY" -m pip install -q -e '.[tui,stacks]'
if "$PY" -c 'import torch' >/dev/null 2>&1; then
    torch=$("$PY" -c 'import torch; print(torch.__version__.split("+")[0])')
    say "using torch $torch"
    printf 'torch==%s\n' "$torch" >"$venv/torch-kept.txt"
    "$PY" -m pip install -q -c "$venv/torch-kept.txt" "$("$PY" -m runner.child.matching_transformers "$torch")" accelerate safetensors datasets
else
    say "installing torch 2.13.0 (on a machine with a GPU this is a large download)"
    "$PY" -m pip install -q -c constraints.txt 'torch==2.13.0'
    "$PY" -m pip install -q -c constraints.txt -e '.[demo]'
fi
install_quickstart_input
exec env VIRTUAL_ENV="$venv" PATH="$venv/bin:$PATH" "$venv/bin/doctor" demo "$@"
