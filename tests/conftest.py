"""The tests import anatomy.py from the folder above, wherever it lies."""
import os
import sys
from pathlib import Path

ROOT = Path(os.environ.get("ANATOMY", Path(__file__).parents[1])).resolve()
sys.path.insert(0, str(ROOT))


def pytest_configure(config):
    """A warning nobody asked for is a failure."""
    config.addinivalue_line("filterwarnings", "error")
