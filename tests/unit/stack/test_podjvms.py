"""The shell is a real one of this machine, whose processes are those of a pod; only its connection is made up."""

import os
import select
import subprocess
import sys
import weakref
from collections.abc import Iterator
from contextlib import suppress

import pytest

from sinkbench.errors import StackError
from sinkbench.stack.meter import COMPILER
from sinkbench.stack.operators import Object
from sinkbench.stack.podjvms import COMMAND, PodJvms
from tests.support.waiting import until

# A process whose only thread has the name of a compiler's.
COMPILES = "open('/proc/self/comm', 'w').write('C2 CompilerThre'); print(flush=True)\nwhile True: sum(range(1000))"


CONNECT, POSTGRES = ({"metadata": {"name": name, "uid": name}} for name in ("connect-0", "postgres-0"))


class Shell:
    """What `Api.shell` returns, of a process beside us, which ends with it."""

    def __init__(self, command: list[str], opened: list["subprocess.Popen[bytes]"]) -> None:
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert process.stdin is not None
        assert process.stdout is not None
        self._in, self._out = process.stdin, process.stdout
        self._text, self._open = "", True
        opened.append(process)
        weakref.finalize(self, end, process)

    def write_stdin(self, text: str) -> None:
        self._in.write(text.encode())
        self._in.flush()

    def update(self, timeout: float) -> None:
        if select.select([self._out], [], [], timeout)[0]:
            more = os.read(self._out.fileno(), 1 << 16)
            self._text, self._open = self._text + more.decode(errors="replace"), bool(more)

    def read_all(self) -> str:
        text, self._text = self._text, ""
        return text

    def is_open(self) -> bool:
        return self._open


def end(process: "subprocess.Popen[bytes]") -> None:
    assert process.stdin is not None
    assert process.stdout is not None
    with suppress(BrokenPipeError):
        process.stdin.close()
    # What it still wants to say ends it.
    process.stdout.close()
    process.wait()


@pytest.fixture
def compiler() -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen([sys.executable, "-c", COMPILES], stdout=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.readline()
    yield process
    process.kill()
    process.wait()
    process.stdout.close()


def test_the_compilers_of_a_pod_are_read_until_it_is_gone(compiler: subprocess.Popen[bytes]) -> None:
    opened: list[subprocess.Popen[bytes]] = []
    jvms = PodJvms(lambda _: Shell(["sh", "-c", COMMAND], opened))
    first = until(lambda: jvms.seconds([CONNECT]), 10)["connect-0"]
    used = until(lambda: [each for each in jvms.seconds([CONNECT]).values() if each[COMPILER] > first[COMPILER]], 10)
    compiler.kill()
    compiler.wait()
    # The time of a thread that has ended stays counted.
    last = until(lambda: jvms.seconds([CONNECT]), 10)["connect-0"]
    assert last[COMPILER] >= used[0][COMPILER]
    assert jvms.seconds([]) == {}
    assert [each.returncode for each in opened] != [None]


@pytest.mark.parametrize("command", [["false"], ["sh", "-c", "while read -r _; do echo .; done"]])
def test_a_pod_without_a_jvm_or_a_shell_is_not_asked_all_the_time(command: list[str]) -> None:
    opened: list[subprocess.Popen[bytes]] = []
    jvms = PodJvms(lambda _: Shell(command, opened))
    until(lambda: jvms.seconds([POSTGRES]) == {} and opened[0].returncode is not None)
    assert jvms.seconds([POSTGRES]) == {}
    assert len(opened) == 1


def test_what_answers_too_late_is_read_the_next_time_and_whoever_forgets_it_leaves_no_shell(
    compiler: subprocess.Popen[bytes],
) -> None:
    opened: list[subprocess.Popen[bytes]] = []

    def read() -> None:
        slow = ["sh", "-c", COMMAND.replace("do cat", "do sleep 0.5; cat")]
        jvms = PodJvms(lambda _: Shell(slow, opened))
        assert jvms.seconds([CONNECT]) == {}
        assert COMPILER in until(lambda: jvms.seconds([CONNECT]), 10)["connect-0"]

    read()
    assert opened[0].returncode is not None


def test_without_the_right_nothing_is_visible() -> None:
    asked = []

    def refused(pod: Object) -> Shell:
        asked.append(pod)
        raise StackError("pods/exec is forbidden")

    jvms = PodJvms(refused)
    assert [jvms.seconds([CONNECT]) for _ in range(2)] == [{}, {}]
    assert asked == [CONNECT]
