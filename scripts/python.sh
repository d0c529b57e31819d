# The Python package for the tests: its wheel in an environment of its own. Sourced after lib.sh.
python_venv=$root/build/python/venv

# Succeeds where the wheel can be built.
can_build_wheel() {
    python3 -c 'import sys, venv; sys.exit(sys.version_info < (3, 11))' 2>/dev/null &&
        [ -f /usr/lib/llvm-22/lib/libLLVMCore.a ]
}

# Makes an environment with NumPy and pytest; fails where they are not available.
make_python_venv() {
    [ ! -x "$python_venv/bin/pytest" ] || return 0
    mkdir -p "$root/build/python"
    { python3 -m venv --clear "$python_venv" &&
        "$python_venv/bin/python" -m pip install --quiet numpy pytest; } >"$root/build/python/venv.log" 2>&1
}

# Builds the wheel and installs it in the environment.
install_wheel() {
    rm -rf "$root/build/python/dist"
    "$root/scripts/build-wheel" "$root/build/python/dist"
    quietly "$root/build/python/pip.log" "$python_venv/bin/python" -m pip install --quiet --no-index \
        --no-deps --force-reinstall "$root"/build/python/dist/*.whl
}
