"""The tests beside other frameworks are read only where these are installed: `.venv-frameworks`."""

from importlib.util import find_spec

collect_ignore_glob = [] if find_spec("torch") else ["test_*.py"]
