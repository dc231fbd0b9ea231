"""A process that starts and ends threads keeps few heaps."""

import subprocess
import sys

import pytest

from sinkbench.cli.main import MOST_HEAPS

COUNTED = """
import ctypes, sys, threading
from sinkbench.cli.main import keep_few_heaps

if "told" in sys.argv and not keep_few_heaps():
    sys.exit(3)
together = threading.Barrier(8)

def work():
    together.wait()
    [bytearray(5000) for _ in range(1000)]
    together.wait()

for each in [threading.Thread(target=work) for _ in range(8)]:
    each.start()
for each in threading.enumerate()[1:]:
    each.join()
library = ctypes.CDLL(None)
library.malloc_info(0, ctypes.c_void_p.in_dll(library, "stdout"))
"""


def heaps(*arguments: str) -> int:
    """How many heaps a process of its own has after eight threads."""
    done = subprocess.run([sys.executable, "-c", COUNTED, *arguments], capture_output=True, text=True, check=False)
    if done.returncode == 3 or "malloc_info" in done.stderr:
        pytest.skip("this C library has other heaps than glibc")
    return done.stdout.count("<heap ")


def test_threads_share_few_heaps() -> None:
    assert heaps() > MOST_HEAPS
    assert heaps("told") <= MOST_HEAPS
