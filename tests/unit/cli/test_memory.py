"""A process that starts and ends threads keeps few heaps."""

import subprocess
import sys

import pytest

from sinkbench.cli.main import MOST_HEAPS

COUNTED = """
import ctypes, sys, tempfile, threading
from sinkbench.cli.main import keep_few_heaps

if "told" in sys.argv and not keep_few_heaps():
    sys.exit(3)
together = threading.Barrier(8)

def work():
    together.wait()
    [bytearray(5000) for _ in range(1000)]
    together.wait()

threads = [threading.Thread(target=work) for _ in range(8)]
for each in threads:
    each.start()
for each in threads:
    each.join()
library = ctypes.CDLL(None)
library.fopen.restype = ctypes.c_void_p
with tempfile.NamedTemporaryFile() as told:
    file = ctypes.c_void_p(library.fopen(told.name.encode(), b"w"))
    library.malloc_info(0, file)
    library.fclose(file)
    print(told.read().count(b"<heap "))
"""


def heaps(*arguments: str) -> int:
    """How many heaps a process of its own has after eight threads."""
    done = subprocess.run([sys.executable, "-c", COUNTED, *arguments], capture_output=True, text=True, check=False)
    if done.returncode == 3 or "malloc_info" in done.stderr:
        pytest.skip("this C library has other heaps than glibc")
    return int(done.stdout)


def test_threads_share_few_heaps() -> None:
    assert heaps() > MOST_HEAPS
    assert heaps("told") <= MOST_HEAPS
