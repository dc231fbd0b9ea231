"""Where services' CPU time goes: stacks of JVMs by Java Flight Recorder, of others by perf where it is installed."""

import re
import shutil
import signal
import subprocess
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from sinkbench.errors import StackError
from sinkbench.stack.processes import command_line, descendants
from sinkbench.stack.tools import find_java, run
from sinkbench.topology import service_of

PER_SECOND = "99"
# async-profiler's converter ends the frames of a stack with how they ran: interpreted, compiled by C1, and so on.
_KIND = re.compile(r"_\[\w\]")


class Profiler:
    """Records the processes that `pids` gives by node. `converter` is async-profiler's jar, which draws the stacks."""

    def __init__(self, pids: Callable[[], Mapping[str, int]], converter: Path) -> None:
        self._pids = pids
        self._converter = converter

    @contextmanager
    def recording(self, folder: Path) -> Iterator[None]:
        """Records until the context ends, then makes `folder` with files as `connect-1-4711.jfr`, `postgres.perf`."""
        perf = shutil.which("perf")
        with TemporaryDirectory() as place, ExitStack() as recordings:
            # The services may run as another account, which may not write below the results.
            Path(place).chmod(0o777)
            recordings.callback(lambda: folder.chmod(0o755))
            recordings.callback(shutil.copytree, place, folder)
            for node, pid in self._pids().items():
                these = [pid, *descendants(pid)]
                jvms = [each for each in these if Path((command_line(each) or [""])[0]).name == "java"]
                for jvm in jvms:
                    # Most threads in native methods wait there.
                    events = ("settings=profile", "jdk.NativeMethodSample#enabled=false")
                    _do("jcmd", jvm, "JFR.start", "name=sinkbench", *events)
                    file = f"{place}/{node}-{jvm}.jfr"
                    recordings.callback(_do, "jcmd", jvm, "JFR.stop", "name=sinkbench", f"filename={file}")
                if perf is not None and not jvms:
                    # Of a process that begins meanwhile, as a backend does, its parent's recording has the stacks, too.
                    asked = [perf, "record", "-F", PER_SECOND, "-g", "-o", f"{place}/{node}.perf", "-p", str(pid)]
                    recording = subprocess.Popen(asked, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
                    recordings.callback(recording.wait)
                    recordings.callback(recording.send_signal, signal.SIGINT)
            yield

    def draw(self, folder: Path, title: str) -> dict[str, Counter[str]]:
        """Draws a flame graph of each service, as `connect.html`, and returns its stacks: frames with `;` between."""
        stacks: dict[str, Counter[str]] = {}
        for file in sorted(folder.glob("*")):
            found = stacks.setdefault(service_of(file.stem), Counter())
            found.update(self._of_jvm(file) if file.suffix == ".jfr" else _of_perf(file))
        for service, found in stacks.items():
            text = folder / f"{service}.collapsed"
            text.write_text("".join(f"{stack} {count}\n" for stack, count in found.items()), encoding="utf-8")
            self._convert("--title", f"{service}: {title}", text, folder / f"{service}.html")
            text.unlink()
        return stacks

    def _of_jvm(self, file: Path) -> Counter[str]:
        text = file.with_suffix(".collapsed")
        self._convert("--norm", "--dot", "-o", "collapsed", file, text)
        found: Counter[str] = Counter()
        for line in text.read_text(encoding="utf-8").splitlines():
            stack, _, count = line.rpartition(" ")
            found[_KIND.sub("", stack)] += int(count)
        text.unlink()
        return found

    def _convert(self, *words: str | Path) -> None:
        _do("java", "-jar", self._converter, *words)


def _of_perf(file: Path) -> Counter[str]:
    found: Counter[str] = Counter()
    for sample in run(["perf", "script", "-i", str(file), "-F", "comm,ip,sym"]).stdout.split("\n\n"):
        # A function without a name counts for its caller.
        named = (line.split(None, 1)[-1] for line in sample.splitlines()[1:] if not line.endswith("[unknown]"))
        if stack := ";".join([*named][::-1]):
            found[stack] += 1
    return found


def _do(program: str, *words: object) -> None:
    """Runs a program of the JDK. Raises StackError, with the last line that it says."""
    done = run([str(find_java() / "bin" / program), *map(str, words)])
    if done.returncode:
        told = (done.stdout + done.stderr).strip().splitlines()
        raise StackError(f"{program} {words[0]}: {(told or ['no message'])[-1]}")
