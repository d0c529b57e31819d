# The Python package for the tests: its wheel in an environment of its own. Sourced after lib.sh.
python_venv=$root/build/python/venv

# Succeeds when the wheel can be built, and an environment with NumPy and pytest be made.
has_python() {
    python3 -c 'import sys, venv; sys.exit(sys.version_info < (3, 11))' 2>/dev/null &&
        [ -f /usr/lib/llvm-22/lib/libLLVMCore.a ]
}

# Makes the environment: NumPy, pytest and the wheel, nothing else. Fails where they cannot be had.
make_python() {
    local log=$root/build/python/venv.log
    mkdir -p "$root/build/python"
    rm -rf "$root/build/python/dist"
    "$root/scripts/build-wheel" "$root/build/python/dist"
    if [ ! -x "$python_venv/bin/pytest" ]; then
        python3 -m venv --clear "$python_venv" &&
            "$python_venv/bin/python" -m pip install --quiet numpy pytest || return 1
    fi >"$log" 2>&1
    quietly "$log" "$python_venv/bin/python" -m pip install --quiet --no-index --no-deps \
        --force-reinstall "$root"/build/python/dist/*.whl
}
