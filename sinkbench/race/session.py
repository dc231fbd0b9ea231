"""Runs a plan: starts the stack if it is down, takes all trials, and stops what it started."""

import shlex
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from datetime import UTC, datetime
from functools import reduce
from importlib import import_module
from pathlib import Path
from threading import Thread

from pydantic import JsonValue
from rich.console import Console

from loadgen.reading import printable
from sinkbench.analysis.intervals import FEWEST_BLOCKS, FEWEST_PAIRS
from sinkbench.analysis.words import counted
from sinkbench.environment import commit, describe, joined, machine
from sinkbench.errors import Interrupted, ResultsError, SinkbenchError
from sinkbench.live.events import Ports
from sinkbench.live.state import LiveRun
from sinkbench.live.views import choose_ui
from sinkbench.load.records import KeptRecords, keep_records
from sinkbench.plan.cells import Cell, expand
from sinkbench.plan.checks import file_hashes
from sinkbench.plan.entries import load_queries
from sinkbench.plan.plan import CapacityPlan, Plan
from sinkbench.race import preparation
from sinkbench.race.canary import check_pipelines
from sinkbench.race.leftovers import check_alone, check_groups, sweep
from sinkbench.race.lock import StarterNote, held_folder, only_race, race_on
from sinkbench.race.race import Race
from sinkbench.race.resume import Journal, Unfinished
from sinkbench.results import FILES, RECORDS, RunSummary
from sinkbench.runs.store import RunFolder, check_writable, read_trials
from sinkbench.secrets import redacted
from sinkbench.settings import CHECKOUT, state_folder
from sinkbench.stack import Stack
from sinkbench.stack.tools import add_plugin, checksum
from sinkbench.trial.cluster import Cluster


def run_plan(
    stack: Stack,
    plan: Plan,
    results: Path,
    console: Console,
    seconds: float | None = None,
    ports: Ports | None = None,
    *,
    keep: bool = False,
) -> tuple[RunFolder, RunSummary]:
    """Takes all trials of a plan; starts a stack that is down and stops it at the end, or leaves that to `stop_kept`.

    No block begins that would end later than `seconds` after the first pilot. Raises UserError if plan,
    machine, port or stack is not usable, and Interrupted."""
    with ExitStack() as opened:
        records = opened.enter_context(keep_records(plan.load, lambda: stack.endpoints, plan.where_records))
        plan = plan.seeded()
        cells = expand(plan, stack.workers)
        if plan.queries is not None:
            load_queries(CHECKOUT / plan.queries)
        preparation.check_plan(plan, cells, stack, records)
        check_writable(results)
        session = opened.enter_context(_Session(stack, plan, cells, console, records))
        session.keep = keep
        environment = session.open(ports)
        folder = RunFolder.create(results, plan, CHECKOUT / "connectors")
        opened.enter_context(held_folder(folder.path))
        return folder, session.race(Journal(folder, plan, cells, environment), seconds)


def stop_kept(stack: Stack) -> None:
    """Stops a stack that races with `keep` have started, unless another race is on it."""
    if StarterNote(stack).run() is not None and race_on(stack.lock_file) is None:
        stack.down()
        StarterNote(stack).remove()


def resume_run(
    stack: Stack, run: Unfinished, console: Console, ports: Ports | None = None
) -> tuple[RunFolder, RunSummary]:
    """Takes a run's remaining trials like `run_plan`. Raises ResultsError if conditions changed or it is active."""
    connectors = CHECKOUT / "connectors"
    # Checks that need no service come before starting one.
    here = {**machine(), "commit": commit(CHECKOUT)}
    with ExitStack() as opened:
        records = opened.enter_context(keep_records(run.plan.load, lambda: stack.endpoints))
        run.check({"stack": stack.name, "workers": stack.workers, **here, **_of_records(records)}, connectors)
        check_writable(run.folder.path)
        opened.enter_context(held_folder(run.folder.path))
        session = opened.enter_context(_Session(stack, run.plan, run.cells, console, records))
        run.check(session.open(ports), connectors)
        if read_trials(run.folder.trials_path) != run.trials:
            raise ResultsError(f"{run.folder.path}: has got further trials meanwhile; resume it again")
        again = f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"
        return run.folder, session.race(run.journal([*run.summary.resumed, again]))


def _of_records(records: KeptRecords | None) -> dict[str, JsonValue]:
    return {} if records is None else {RECORDS: records.facts.model_dump(mode="json")}


class _Session(ExitStack):
    """A locked, running stack. Whatever it opened is closed in reverse order, also after an error."""

    def __init__(
        self, stack: Stack, plan: Plan, cells: Sequence[Cell], console: Console, records: KeptRecords | None
    ) -> None:
        super().__init__()
        self._stack = stack
        self._plan = plan
        self._cells = cells
        self._console = console
        self._records = records
        self._live = LiveRun()
        self._starter = StarterNote(stack)
        self._plugins: dict[str, str] = {}
        self.keep = False
        """Whether a stack that this has started, or an earlier race with it, stays up."""

    def open(self, ports: Ports | None) -> dict[str, JsonValue]:
        """Prepares everything for the first pilot; returns the environment. Raises UserError."""
        self._live.begin("", [cell.key for cell in self._cells], None)
        only = only_race(self._stack.lock_file, state_folder(), self._plan.name, self._stack.own_container)
        self._tell = self.enter_context(only)
        self.enter_context(_followed(self._live, ports or Ports(), self._say))
        fewest = FEWEST_PAIRS if any(entry.arm for entry in self._plan.pipelines) else FEWEST_BLOCKS
        if self._plan.trials < fewest and not isinstance(self._plan, CapacityPlan):
            few = f"{counted(self._plan.trials, 'trial')} a cell: too few for 95 % intervals and `sinkbench compare`"
            self._say(f"{few}; --trials {fewest} is enough")
        if self._records is not None:
            self._say(f"records: {self._records.facts.in_words}")
        preparation.check_disk(self._stack)
        preparation.prepare_faults(self._cells, self._stack, self._say)
        self._start()
        preparation.try_faults(self._cells, self._stack)
        self._cluster = self._connected(self._stack)
        for number, variables in enumerate(dict.fromkeys(cell.variables for cell in self._cells if cell.variables), 1):
            self._cluster.siblings[variables] = self._connected(self._sibling(number, dict(variables)))
        # Every trial needs it, and the import takes a second or two.
        Thread(target=import_module, args=("scipy.stats",)).start()
        environment = reduce(joined, map(self._checked, self._cluster.all))
        if files := file_hashes(self._plan, CHECKOUT):
            environment[FILES] = {**files}
        if self._plugins:
            environment["plugin_files"] = {**self._plugins}
        environment |= _of_records(self._records)
        return environment

    def _connected(self, stack: Stack) -> Cluster:
        return self.enter_context(closing(Cluster(stack, self._plan, CHECKOUT, self._records)))

    def _sibling(self, number: int, variables: Mapping[str, str]) -> Stack:
        """Starts a second stack with these variables, which is removed in the end."""
        stack = self._stack.sibling(number, variables)
        self._say(f"starting a stack with {', '.join(f'{name}={value}' for name, value in variables.items())}")
        self.callback(stack.down)
        stack.up(self._say)
        return stack

    def _checked(self, cluster: Cluster) -> dict[str, JsonValue]:
        """Checks the cells that are measured on a stack; returns its environment."""
        cells = [cell for cell in self._cells if self._cluster.of(cell) is cluster]
        plugins = preparation.preflight(cluster, cells)
        preparation.validate_configs(cluster, cells, self._say)
        for thing in sweep(cluster):
            self._say(f"removed what an earlier run left behind: {thing}")
        check_alone(cluster)
        check_groups(cluster, cells)
        if cells:
            self._say("sending ten records through each pipeline")
            check_pipelines(cluster, cells)
        return describe(cluster.stack, CHECKOUT, plugins, self._plan.load)

    def race(self, journal: Journal, seconds: float | None = None) -> RunSummary:
        folder = journal.folder
        self._tell(folder.run)
        if not self._found_running:
            self._starter.write(folder.run)
        try:
            with choose_ui(self._console, self._live) as ui:
                summary = Race(self._cluster, journal, ui, seconds).run()
        except (Interrupted, SinkbenchError, OSError) as ended:
            how = "interrupted" if isinstance(ended, Interrupted) else "broken off"
            file = self._stack.endpoints.stack_file
            command = shlex.join(["resume", str(folder.path), *([] if file is None else ["--stack", str(file)])])
            left = "" if seconds is not None else f"; the others are taken by: sinkbench {command}"
            with suppress(OSError):
                self._say(f"{how}; the finished trials are in {folder.path}{left}")
            raise
        if self._found_running:
            preparation.create_named_targets(self._stack)
            if not self._stack.endpoints.shared and self._stack.own_container is None:
                self._say("the stack was up before and stays up; `sinkbench down` stops it")
        return summary

    def _start(self) -> None:
        running, killed = self._stack.start_id() is not None, self._starter.run()
        # A container cannot stop the stack that it is part of.
        taken_over = running and killed is not None and self._stack.own_container is None
        self._found_running = running and not taken_over
        # Stops what this command started, also if a start fails or Ctrl-C interrupts it.
        if not self._found_running and not self.keep:
            self.callback(self._stop)
        if taken_over and not self.keep:
            self._say(f"the stack was started by the race of {killed}, which was killed; it is stopped in the end")
        elif not running:
            self._starter.write(self._plan.name)
        if not running:
            self._add_plugins()
        self._say("asking the services" if running else "starting the stack")
        self._live.phase("getting ready")
        self._stack.up(self._say)
        if not running:
            self._starter.write(self._plan.name)

    def _add_plugins(self) -> None:
        """Puts the plan's own plugins where the workers find them, until the run has ended."""
        for plugin in dict.fromkeys(entry.plugin for entry in self._plan.pipelines if entry.plugin):
            path, is_new = add_plugin(plugin, CHECKOUT, self._say)
            if is_new:
                self.callback(shutil.rmtree if path.is_dir() else Path.unlink, path)
            self._plugins[plugin] = checksum(path)

    def _stop(self) -> None:
        # A closed terminal accepts no more lines.
        with suppress(OSError):
            self._say("stopping the stack")
        self._live.phase("stopping the stack")
        self._stack.down()
        self._starter.remove()

    def _say(self, line: str) -> None:
        self._live.say(line)
        self._console.print(printable(redacted(line)), markup=False, highlight=False)


@contextmanager
def _followed(live: LiveRun, ports: Ports, say: Callable[[str], None]) -> Iterator[None]:
    """Serves the live run at its ports, if any, and passes on how the run ended."""
    with ExitStack() as opened:
        # Imported here since most runs do not need them.
        if ports.page is not None:
            from sinkbench.live.page import live_page

            say(f"live: {opened.enter_context(live_page(live, ports.page))}")
        if ports.metrics is not None:
            from sinkbench.live.page import metrics_endpoint

            say(f"metrics: {opened.enter_context(metrics_endpoint(live, ports.metrics))}metrics")
        try:
            yield
        except SystemExit:
            live.end("interrupted")
            raise
        except BaseException as error:
            if isinstance(error, SinkbenchError):
                live.say(str(error))
            live.end("failed")
            raise
        live.end("complete")
