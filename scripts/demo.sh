#!/usr/bin/env bash
# Sets up .venv beside this checkout and runs the main job: check, then the quickstart run, then where the report lies.
set -euo pipefail
. "$(dirname "$0")/environment.sh"

make_environment system
cd "$here"
"$PY" -m pip install -q -e '.[tui,stacks]'
if ! "$PY" -c 'import torch' >/dev/null 2>&1; then
    wanted=$("$PY" -m doctor recommend --python "$PY" --torch-args || true)
    case "$wanted" in
        *whl/cpu* | "") wanted='torch==2.13.0' ;; # what was tested; without a GPU any build will do
    esac
    say "installing $wanted (with a GPU this is a large download)"
    # shellcheck disable=SC2086 # several words are meant
    "$PY" -m pip install -q $wanted
fi
# From here on torch is frozen: whatever image this is keeps the one it has.
torch=$("$PY" -W ignore -c 'import torch; print(torch.__version__)' 2>/dev/null)
printf 'torch==%s\n' "$torch" >"$venv/torch-kept.txt"
say "using torch $torch"
"$PY" -m pip install -q -c "$venv/torch-kept.txt" "$("$PY" -m doctor recommend --transformers-for "$torch" --target-python "$("$PY" -c 'import platform; print(platform.python_version())')")" \
    accelerate safetensors datasets
install_quickstart_input
exec env VIRTUAL_ENV="$venv" PATH="$venv/bin:$PATH" "$venv/bin/doctor" demo "$@"
