#!/bin/sh
# Print a Python of version 3.12 or newer that can make virtual environments; fail with one sentence where there is none.
usable() { "$1" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 12))' >/dev/null 2>&1; }

for candidate in ${PYTHON:-} python3.13 python3.12 python3.14 python3 python; do
    if usable "$candidate"; then command -v "$candidate"; exit 0; fi
done
for minor in 13 12 14; do
    for candidate in "${PYENV_ROOT:-$HOME/.pyenv}"/versions/3.$minor.*/bin/python; do
        if usable "$candidate"; then echo "$candidate"; exit 0; fi
    done
done
if command -v uv >/dev/null 2>&1; then
    candidate=$(uv python find '>=3.12' 2>/dev/null) && usable "$candidate" && { echo "$candidate"; exit 0; }
fi
echo "Isoelastic needs Python 3.12 or newer with the venv module, and none was found: install one (python.org, your package manager, 'pyenv install 3.13' or 'uv python install 3.13') or name one with PYTHON=/path/to/python." >&2
exit 1
