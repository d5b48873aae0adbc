#!/usr/bin/env bash
# with_python.sh MODULE SCRIPT ARG...: runs a script that needs a Python with this module. The interpreter is
# $LHOST_TEST_PYTHON, else python3; where it lacks the module the test says so and is skipped (exit 77).
python=${LHOST_TEST_PYTHON:-python3}
module=$1
shift
if ! "$python" -c "import $module" 2>/dev/null; then
  echo "skipped: $python cannot import $module; LHOST_TEST_PYTHON names another interpreter"
  exit 77
fi
PYTHONDONTWRITEBYTECODE=1 exec "$python" "$@"
