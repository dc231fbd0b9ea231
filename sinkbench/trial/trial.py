"""One trial: reset, load, run, stop, audit, record. What it drains, offers or re-scales is up to its kind."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict
from datetime import UTC, datetime

from sinkbench.analysis.audit import SeqAudit, few_ranges
from sinkbench.analysis.content import Content, documents_of
from sinkbench.analysis.deadletters import DeadLetter, causes
from sinkbench.analysis.memory import memory_peaks, total_memory_peak
from sinkbench.analysis.pooler import waits_in
from sinkbench.analysis.reconcile import reconcile
from sinkbench.analysis.samples import Sample, cpu_seconds_per_million, rejected_writes, used_up
from sinkbench.analysis.stalls import Stall, idle_tasks, silences
from sinkbench.analysis.versions import VersionAudit
from sinkbench.analysis.warm import jvm_cpu_per_million
from sinkbench.analysis.words import few_of
from sinkbench.bottleneck.evidence import Circumstances, evidence_of
from sinkbench.bottleneck.verdict import cause_of
from sinkbench.errors import INTERRUPTIONS, ConnectError, Interrupted, ReasonCode, ServiceError, TrialFailed
from sinkbench.plan.cells import Cell
from sinkbench.results import (
    Asked,
    Audit,
    Bloat,
    Bottleneck,
    Durability,
    Pool,
    Reason,
    Reconciliation,
    TrialRecord,
)
from sinkbench.services.connect import ConnectorStatus, is_even
from sinkbench.services.failures import in_one_line
from sinkbench.sinks import Sink, SinkBloat, SinkPooling, sink_kind
from sinkbench.trial.bench import Bench, Loaded, TopicLoad
from sinkbench.trial.deadletters import DeadLetters
from sinkbench.trial.interference import Interference
from sinkbench.trial.kind import Figures, Kind, Observer
from sinkbench.trial.names import Names
from sinkbench.trial.outofmemory import exhausted_in_words, mend_of, used_up_heaps
from sinkbench.trial.refused import why_refused
from sinkbench.trial.replication import ReplicationCheck
from sinkbench.trial.rest import finish
from sinkbench.trial.sampler import Sampler, fresh_samples
from sinkbench.trial.stop import DrainWatch, End, Timeouts, Watch, died

__all__ = ["Trial"]


class Trial:
    """One trial. What it creates is left to `Bench.clean`, when all services are there again.

    Attributes:
        contexts: what ends with the trial.
        samples: what was read while the connector ran, oldest first.
        samples_from_us: when second 0 of the samples was, in microseconds since the epoch.
        reasons: why the figures must not be used, the cause before its consequences.
        loaded: what came of the load.
        placed: the connector when all of its tasks had started, or failed to.
        audited: what the audit counted; None if there was none.
        not_audited: why there was none, so far.
        offered_share: share of the load that was sent in time; None where none was offered at a rate.
        poisoned: bad records that were put into the topic beside the load.
    """

    def __init__(self, bench: Bench, cell: Cell, names: Names, records: int, observer: Observer) -> None:
        """
        Args:
            bench: the stack and its clients.
            cell: what to measure.
            names: what the trial's things are called.
            records: how many there are to store.
            observer: is told what goes on.
        """
        self.bench = bench
        self.cell = cell
        self.names = names
        self.records = records
        self.observer = observer
        self.contexts = ExitStack()
        self.samples: list[Sample] = []
        self.samples_from_us = 0
        self.reasons: list[Reason] = []
        self.loaded: Loaded | None = None
        self.placed: ConnectorStatus | None = None
        self.audited: Audit | None = None
        self.not_audited = "the connector was not started"
        self.offered_share: float | None = None
        self.poisoned = 0
        self._started_at = datetime.now(UTC)
        self._started = self._second_zero = time.monotonic()
        self._last: ConnectorStatus | None = None
        self._connection_limit: int | None = None
        self._pooling: SinkPooling | None = None
        self._writes_before: int | None = None
        self._task_metrics: Mapping[str, float] = {}
        self._consumed: int | None = None
        self._lost_ranges = self._duplicated_ranges = self._altered_ranges = ""
        self._wrong_keys: dict[str, list[str]] = {}
        self._bloat_before: SinkBloat | None = None
        self._bloat: Bloat | None = None
        self._disk_before: int | None = 0
        self._of_target: list[str] = []
        self._of_content: list[str] = []
        self._created = False
        self._interference = Interference(bench, cell.sink, names)
        self._replication = ReplicationCheck(bench, cell, names)
        self._of_replication: list[str] = []
        self._durability: Durability | None = None
        self._dead_letters = DeadLetters(bench, cell, names)
        self._letters: list[DeadLetter] | None = None
        self._refused: str | None = None
        self._records_per_write: float | None = None
        self._disk_bytes_per_record: float | None = None
        self._refusal: str | None = None
        self._connector: str | None = None
        self._asked: list[Asked] = []

    def take(self, kind: Kind[Trial], block: int, recover: Callable[[], object] | None = None) -> TrialRecord:
        """Takes the trial from the empty sink to the audit.

        Args:
            kind: what is drained, offered or re-scaled.
            block: the number of its block, from 1.
            recover: starts again what has died; None if that is nobody's business. What a trial has lost in which a
                service died is then not known.

        Returns:
            Its record, with the reasons if its figures must not be used.
        """
        with self.noting(), self.contexts:
            self.reset()
            kind.load(self)
            kind.run(self)
            self.stop()
            self.audit()
            kind.read(self)
            self._read_bloat()
            self._read_disk()
            self._ask()
        if recover is not None and self._was_interrupted:
            self._audit_the_rest(recover)
        return self.record(block, kind.figures(self))

    @property
    def sink(self) -> Sink:
        """The cell's sink. Raises StackError if it does not answer."""
        return self.bench.sink(self.cell.sink)

    @property
    def dead_letters(self) -> int | None:
        """Records in the connector's dead letter queue; None if it has none, or if nobody looked."""
        return None if self._letters is None or self._dead_letters.queue is None else len(self._letters)

    @property
    def bad_letters(self) -> int | None:
        """Those of the dead letters that are none of the load's records, each once; None if there is no queue."""
        if self._letters is None or self._dead_letters.queue is None:
            return None
        bad = (each for each in self._letters if not documents_of([each.value], self.names.trial, self.cell.form))
        return len({each.source or each.value for each in bad})

    def seconds(self) -> float:
        """How long the trial has taken so far."""
        return time.monotonic() - self._started

    @contextmanager
    def noting(self) -> Iterator[None]:
        """Makes what ends the steps of a trial early, other than an interrupt, a reason."""
        try:
            yield
        except (TrialFailed, ServiceError, OSError) as error:
            if (interrupt := _interrupt_before(error)) is not None:
                self.observer.phase(in_one_line(error))
                raise interrupt from None
            if isinstance(error, TrialFailed):
                self.note(error.code, str(error), **error.figures)
            else:
                self.note(ReasonCode.SERVICE_ERROR, in_one_line(error))

    def note(self, code: ReasonCode, text: str, **figures: float) -> None:
        """Adds a reason why the trial's figures must not be used."""
        self.reasons.append(Reason(code=code, text=text, figures=figures))

    def reset(self) -> None:
        """Makes an empty target in the sink. Raises TrialFailed if so many records do not fit the disk."""
        self.bench.check_disk(self.records, self.cell.rows_before, self.cell.form)
        self.observer.phase("resetting the sink")
        self._of_target = list(self.bench.create_target(self.cell, self.names))
        if self.cell.rows_before:
            self.observer.phase("putting in the rows before")
            for done in self.bench.fill(self.cell, self.names):
                self.observer.progress(done, self.cell.rows_before)
            # Of these the records' share of the disk is to be told.
            self._disk_before = self.sink.disk_bytes(self.names.target)

    def load(self) -> None:
        """Fills the topic. Raises TrialFailed unless it then holds every record."""
        self.observer.phase("loading the topic")
        wanted = TopicLoad(self.records, self.cell.form, acks=self.cell.acks)
        self.loaded = self.bench.load(self.names, wanted, lambda done: self.observer.progress(done, self.records))
        self.check_loaded()

    def check_loaded(self) -> None:
        """Raises TrialFailed if the topic does not hold what was sent and acknowledged."""
        wrong = reconcile(self.counts())
        if wrong:
            raise TrialFailed("; ".join(each.text for each in wrong), ReasonCode.COUNTS_DISAGREE)

    def run(
        self,
        until: Timeouts | Watch,
        see: Callable[[Sample], None] = lambda sample: None,
        in_topic: Callable[[], int] | None = None,
        sampler: Sampler | None = None,
    ) -> None:
        """Starts the connector and samples until everything is stored, or nothing more is to be expected.

        Args:
            until: when to give up; or what tells when it is over.
            see: is called with each sample, in its turn; may raise TrialFailed.
            in_topic: how many records the topic holds at the moment; None if it holds all of them.
            sampler: another than the usual one.

        Raises:
            TrialFailed: what must hold does not, Connect refuses the connector, a service dies, or the probes hang.
        """
        self._writes_before = self.sink.writes(self.names.target)
        self._connection_limit = self.sink.connection_limit()
        self._pooling = self.bench.pooling(self.cell)
        self._bloat_before = self.bench.bloat(self.cell, self.names)
        self._dead_letters.exclude_existing()
        self._interference.exclude_existing()
        self._check_holding()
        sampler = sampler or self.bench.sampler(self.cell, self.names, self.records, in_topic)
        watch = DrainWatch(self.records, self.cell.tasks, until) if isinstance(until, Timeouts) else until
        self.samples_from_us = sampler.start()
        # Threads take their time to start: what is counted from here would not be on the clock of the samples.
        self._second_zero = sampler.second_zero
        try:
            self._created = True
            self.not_audited = "the connector did not come to the end of the topic"
            self._connector = self.bench.start_connector(self.cell.at_start, self.names)
            end = self._follow(sampler, watch, see)
            if end.dead and end.reason is not None:
                # Whatever is asked of it now would fail, or wait until its client gives up.
                raise self._died(end.reason, end.dead)
            self._last = self.bench.status(self.names)
            # All may be stored before a sample has seen every task run.
            if self.placed is None and self._last is not None and self._last.settled(self.cell.tasks):
                self.placed = self._last
            if end.reason is not None:
                self.reasons.append(end.reason)
        except ConnectError as error:
            raise TrialFailed(str(error), ReasonCode.CONNECT_REFUSED) from None
        except TrialFailed as error:
            raise self._why_silent(error) from None
        finally:
            sampler.stop()
            self.samples = sampler.samples

    def _why_silent(self, error: TrialFailed) -> TrialFailed:
        """That a service has died, if the probes had no answer; any other error as it was.

        A JVM whose heap is used up answers nobody for long before it ends.
        """
        if error.code != ReasonCode.PROBES_SILENT:
            return error
        with suppress(ServiceError, OSError):
            states = self.bench.stack.services()
            # Of a cluster of somebody else's nobody knows that it has ended, only that it does not answer.
            dead = sorted(each.name for each in states if each.state == "dead" and each.exit_code is not None)
            if dead:
                return self._died(died(dead, self.bench.stack.usage().troubles), dead)
        return error

    def _died(self, reason: Reason, dead: Sequence[str]) -> TrialFailed:
        """What ends a trial in which these services have died: for memory, if their exit codes say so."""
        with suppress(ServiceError, OSError):
            if used_up := used_up_heaps(self.bench.stack.services(), dead):
                return TrialFailed(exhausted_in_words(used_up), ReasonCode.OUT_OF_MEMORY)
        return TrialFailed(reason.text, reason.code)

    def _check_holding(self) -> None:
        """Raises TrialFailed if something does not hold that must: what came of the trial would be no figure."""
        broken = self._replication.before()
        for each in broken[:-1]:
            self.note(each.code, each.text, **each.figures)
        if broken:
            raise TrialFailed(broken[-1].text, broken[-1].code, **broken[-1].figures)
        self._durability = self._replication.durability()

    def _follow(self, sampler: Sampler, watch: Watch, see: Callable[[Sample], None]) -> End:
        for fresh in fresh_samples(sampler):
            self.observer.progress(min(fresh[-1].stored or 0, self.records), self.records)
            started = (fresh[-1].tasks_running or 0) + (fresh[-1].tasks_failed or 0)
            if self.placed is None and started == self.cell.at_start.tasks:
                self.placed = self.bench.status(self.names)
            for sample in fresh:
                self.observer.sample(sample)
                see(sample)
            if (end := next(filter(None, map(watch.see, fresh)), None)) is not None:
                return end
        raise AssertionError("samples come until they fail")

    def now(self) -> float:
        """This moment on the clock of the samples, in seconds."""
        return time.monotonic() - self._second_zero

    def stop(self) -> None:
        """Stops the connector, and makes sure that all of its tasks ran and that it read the whole topic."""
        self.observer.phase("stopping the connector")
        # Tasks that were begun again have counted anew.
        self._task_metrics = {} if self._is_broken else self.bench.last_signs(self.names, self.records)
        self._interference.look()
        self.bench.stop_connector(self.names)
        self._consumed = self.bench.consumed(self.names)
        if self._last is not None and self._last.cause() is not None:
            self._refusal = self.bench.refusal(self.cell, self.names)
        self._interference.count_newcomers(self.samples)
        if self._is_broken:
            # What a fault has done to tasks and topic is no reason against the trial, but what it shows.
            return
        self._check_tasks()
        # What is wrong already explains why not everything was read.
        if self._consumed > self.records and not self.reasons:
            more = self._consumed - self.records
            text = f"the topic held {more:,} more records than were sent: somebody else wrote to it"
            self.note(ReasonCode.FOREIGN_RECORDS, text, records=more)
        elif not self._read_all and not self.reasons:
            self.note(
                ReasonCode.NOT_READ,
                f"the connector committed {self._consumed:,} of {self.records:,} records when it stopped",
                committed=self._consumed,
                records=self.records,
            )

    @property
    def _is_broken(self) -> bool:
        """Whether something is broken on purpose while it runs."""
        return self.cell.fault is not None

    @property
    def connections_left(self) -> int | None:
        """Connections to the sink that were still open when the connector was gone; None if nobody could tell."""
        return self._interference.unattributed

    @property
    def _read_all(self) -> bool:
        return self._consumed is not None and self._consumed >= self.records

    def _check_tasks(self) -> None:
        """Adds the reason if not every task ran to the end, or if they were spread unevenly over the workers."""
        tasks, workers, placed = self.cell.tasks, self.cell.workers, self._placement()
        if failed := self._failed_tasks:
            text = f"{failed} of {tasks} tasks FAILED: {self._failure()}"
            self.note(ReasonCode.TASKS_FAILED, text, failed=failed, tasks=tasks)
            if self._is_out_of_memory:
                # What else was seen follows from it.
                cause = self.reasons.pop().model_copy(update={"code": ReasonCode.OUT_OF_MEMORY})
                self.reasons.insert(0, cause)
        elif sum(placed.values()) != tasks:
            text = f"{tasks} tasks were asked for, but not all of them started"
            self.note(ReasonCode.TASKS_NOT_STARTED, text, started=sum(placed.values()), tasks=tasks)
        elif (uneven := self._uneven()) is not None:
            self.note(ReasonCode.TASKS_UNEVEN, uneven, workers=workers)

    def _uneven(self) -> str | None:
        """That the tasks are not spread evenly over the workers, in words; None if they are."""
        workers, placed = self.cell.workers, self._placement()
        # Where the workers' ids are not known beforehand, one without a task is not among them.
        busy = sum(number > 0 for number in placed.values())
        if is_even(placed) and busy >= min(workers, self.cell.tasks):
            return None
        return f"the tasks are spread unevenly over the {workers} workers: {dict(placed)}"

    def check_even(self) -> None:
        """Raises TrialFailed if the tasks that have started are not spread evenly over the workers."""
        if (uneven := self._uneven()) is not None:
            raise TrialFailed(uneven, ReasonCode.TASKS_UNEVEN, workers=self.cell.workers)

    def audit(self) -> None:
        """Compares what the sink holds with what was produced, if the connector came to the end of the topic.

        Records that it has not come to yet, or has written elsewhere, are not lost: there is nothing to audit.
        """
        self._check_holding_still()
        diverted = self._diverted()
        if diverted:
            # Whatever else was seen follows from it.
            self.reasons.insert(0, Reason(code=ReasonCode.DIVERTED, text=diverted))
            self.not_audited = diverted
        # Where something was broken, what never came is lost.
        if diverted or not (self._read_all or self._is_broken):
            return
        self.not_audited = "the audit could not be finished"
        self._check_audit(self._count())
        written = (self.sink.writes(self.names.target) or 0) - (self._writes_before or 0)
        known = self._writes_before is not None and not self._is_broken
        if known and written and not self.reasons and self.audited is not None:
            self._records_per_write = round(self.audited.accounted / written, 2)

    def _diverted(self) -> str | None:
        others = self.sink.capabilities.others
        return None if others is None else others.diverted(self.names.target)

    def _check_holding_still(self) -> None:
        """Adds a reason for each thing that must hold and does not at the end; after a fault that is a note."""
        broken = self._replication.after()
        if self._is_broken:
            self._of_replication = [f"in the end {each.text}" for each in broken]
        else:
            # Whatever else was seen may follow from it.
            self.reasons[:0] = [Reason(code=each.code, text=each.text, figures=dict(each.figures)) for each in broken]

    def _count(self) -> Audit:
        """Counts every stored record."""
        self.observer.phase("auditing")
        counted = self.bench.audit(self.cell, self.names, self.records)
        self._letters = self._dead_letters.read()
        if isinstance(counted, SeqAudit):
            dead = documents_of([letter.value for letter in self._letters], self.names.trial, self.cell.form)
            counted.add_dead(sorted(dead))
        content = self._content()
        counts = {"compared": content.compared, "checked": content.checked, "altered": content.altered}
        self.audited, self.not_audited = counted.result().model_copy(update=counts), ""
        self._altered_ranges = content.altered_ranges
        if isinstance(counted, VersionAudit):
            self._wrong_keys = counted.wrong_keys()
        else:
            self._lost_ranges, self._duplicated_ranges = counted.lost_ranges(), counted.duplicated_ranges()
            if self.audited.lost and not self._is_broken:
                self._refused = why_refused(self.bench, self.cell, self.names, counted.is_lost)
        return self.audited

    def _content(self) -> Content:
        """Whether the sink holds what was sent. That it cannot be told is a note."""
        content, why = None, "the sink does not tell what it holds"
        try:
            content = self.bench.content(self.cell, self.names, self.records)
        except (ServiceError, OSError) as error:
            why = in_one_line(error)
        if content is not None and content.altered:
            which = f" (bench.seq {few_ranges(content.altered_ranges)})" if content.altered_ranges else ""
            share = f"{content.altered:,} of {content.compared:,} records that were compared{which}"
            how = content.how or "their checksums are not those of their values"
            self._of_content = [f"{share} are not stored as they were sent: {how}"]
        elif content is None or not content.compared:
            why = why if content is None else "the sink keeps no document of the records that were looked for"
            self._of_content = [f"what is stored was not compared with what was sent: {why}"]
        if content is not None and content.compared and content.unchecked:
            share = "no record was compared with its checksum"
            if content.checked:
                share = f"{content.checked:,} of {self.records:,} records were compared with their checksums"
            self._of_content.append(f"{share}: {content.unchecked}")
        return content or Content()

    @property
    def _was_interrupted(self) -> bool:
        """Whether trouble has ended the trial while its connector ran."""
        return self._created and self.audited is None and any(each.code in INTERRUPTIONS for each in self.reasons)

    def _audit_the_rest(self, recover: Callable[[], object]) -> None:
        """Audits a trial that trouble has ended, once its connector has come to the end of the topic after all."""
        if self.loaded is None or self.loaded.in_topic != self.records:
            self.not_audited = "its load was broken off, so it is not known what there was to store"
            return
        try:
            recover()
            # What has died may be back by itself; no connection of before goes on.
            self.bench.reconnect()
            # It may be the audit itself that has failed.
            if not self._read_all:
                finish(self.bench, self.cell, self.names, self.records, self.observer)
                self._consumed = self.bench.consumed(self.names)
            if self._read_all and self._diverted() is None:
                self._check_audit(self._count())
        except (TrialFailed, ServiceError, OSError) as error:
            self.not_audited = f"it could not be finished: {in_one_line(error)}"

    def _read_bloat(self) -> None:
        """What changes have left in the sink, also without an audit: it may be deadlocks that have ended the trial.

        That it cannot be told spoils nothing else.
        """
        with suppress(ServiceError, OSError):
            self._bloat = self._bloat_since()

    def _read_disk(self) -> None:
        """What the records take on the sink's disk. That it cannot be told spoils nothing else."""
        if self.audited is None or not self.audited.stored:
            return
        with suppress(ServiceError, OSError):
            if (size := self.sink.disk_bytes(self.names.target)) is not None and self._disk_before is not None:
                self._disk_bytes_per_record = round(max(size - self._disk_before, 0) / self.audited.stored, 1)

    def _ask(self) -> None:
        """Asks what the sink can answer, if it holds every record once: only then it is known what is right."""
        if self.audited is not None and self.audited.clean and not self.reasons:
            self.observer.phase("asking the queries")
            self._asked = self.bench.ask(self.cell, self.names, self.records)

    def _bloat_since(self) -> Bloat | None:
        """What the changes of this trial have left in the sink; None if that is not known."""
        before, after = self._bloat_before, self.bench.bloat(self.cell, self.names)
        if before is None or after is None:
            return None

        def more(one: int | None, other: int | None) -> int | None:
            # A service that started again counts anew.
            return None if one is None or other is None else max(other - one, 0)

        return Bloat(
            dead_rows=after.dead_rows,
            deadlocks=more(before.deadlocks, after.deadlocks),
            rollbacks=more(before.rollbacks, after.rollbacks),
            bytes_before=before.bytes,
            bytes_after=after.bytes,
        )

    def _check_audit(self, found: Audit) -> None:
        # Bad records that the sink takes are none of the load's, and nobody else's either.
        if found.foreign > self.poisoned:
            text = f"{found.foreign:,} rows in the sink are none of this trial's records"
            self.note(ReasonCode.FOREIGN_RECORDS, text, foreign=found.foreign)
        # What a fault does to a pipeline is no reason against its trial.
        if self._letters and not self._is_broken:
            count, reason = len(self._letters), causes(self._letters)[0].reason
            text = f"{count:,} {'record is a dead letter' if count == 1 else 'records are dead letters'}"
            text += f"{f' ({reason})' if reason else ''}; `sinkbench dlq {self._dead_letters.queue}` explains them"
            self.note(ReasonCode.DEAD_LETTERS, text, records=count)
        for what, keys in self._wrong_keys.items():
            count = getattr(found, what)
            text = f"{count:,} {'key is' if count == 1 else 'keys are'} {what}: {few_of(keys, count)}"
            self.note(ReasonCode(what), text, keys=count)
        if self._is_broken:
            return
        rejected = rejected_writes(self.samples, sink_kind(self.cell.sink).rejected)
        if rejected and (found.lost or found.wrong_keys):
            text = f"{self.cell.sink} rejected {rejected:,} writes meanwhile"
            text += ": what the connector does not send again is lost"
            # What else was seen follows from it.
            cause = Reason(code=ReasonCode.WRITES_REJECTED, text=text, figures={"rejected": rejected})
            self.reasons.insert(0, cause)
        if self._refused is not None:
            text = f"{self.cell.sink} refuses a lost record that is written to it from here: {self._refused}"
            self.reasons.insert(0, Reason(code=ReasonCode.WRITES_REJECTED, text=text))
        # What is wrong already explains why counts differ.
        if not self.reasons:
            for each in reconcile(self.counts()):
                if each.invalid:
                    # What tasks were told anew takes their counts along.
                    self.note(ReasonCode.COUNTS_DISAGREE, "; ".join([each.text, *self.interruptions()]))

    def counts(self) -> Reconciliation:
        """The same records at each step of their way, as far as they came."""
        put = self._task_metrics.get("tasks_put_total")
        return Reconciliation(
            sent=None if self.loaded is None else self.loaded.sent,
            acknowledged=None if self.loaded is None else self.loaded.acknowledged,
            in_topic=None if self.loaded is None else self.loaded.in_topic,
            consumed=self._consumed,
            # Tasks that are gone take their counts with them.
            put=None if put is None or self.cell.before is not None else round(put),
            stored=None if self.audited is None else self.audited.accounted,
        )

    def disagreements(self) -> list[str]:
        """Which of the counts differ, in words; none of a trial that was not audited."""
        return [] if self.audited is None else [each.text for each in reconcile(self.counts())]

    def gaps(self, stalled: Sequence[Stall]) -> list[str]:
        """When nothing was stored, a service did not answer or not all tasks ran, in words."""
        silent = [each.in_words for each in silences(self.samples)]
        return [*(each.in_words for each in stalled), *silent, *self.interruptions()]

    def interruptions(self) -> list[str]:
        """When not all tasks ran, in words; nothing where tasks are told to change."""
        if self.cell.before is not None or self._is_broken:
            return []
        return [each.in_words for each in idle_tasks(self.samples, self.records, self.cell.tasks)]

    def problem(self) -> str:
        """Why the trial came to nothing, as far as is known."""
        return self._failure() or "; ".join(reason.text for reason in self.reasons)

    def _failure(self) -> str | None:
        """Why tasks failed, if some did: what they say themselves, after what they may not know."""
        cause = None if self._last is None else self._last.cause()
        if cause is not None and self._is_out_of_memory:
            return mend_of(cause)
        peak, limit = used_up(self.samples, self._connection_limit), self._connection_limit
        if cause is None or (peak is None and self._refusal is None):
            return cause
        if peak is None:
            return f"the connector's connection, tried from here: {self._refusal} (the task says: {cause})"
        return f"too many clients already, {peak} of the server's {limit} connections are open ({cause})"

    @property
    def _is_out_of_memory(self) -> bool:
        """Whether a task has FAILED since its worker had no memory left."""
        return self._last is not None and self._last.out_of_memory > 0

    @property
    def _failed_tasks(self) -> int:
        return 0 if self._last is None else len(self._last.failed)

    def _placement(self) -> dict[str, int]:
        return {} if self.placed is None else self.bench.placement(self.placed)

    def bottleneck(self) -> Bottleneck | None:
        """What limited the trial, as far as its samples tell."""
        kind = sink_kind(self.cell.sink)
        around = Circumstances(
            sink=self.cell.sink,
            mode=self.cell.mode,
            tasks=self.cell.tasks,
            failed_tasks=self._failed_tasks,
            placement=self._placement(),
            records_per_write=self._records_per_write,
            offered_share=self.offered_share,
            used_connections=used_up(self.samples, self._connection_limit),
            connection_limit=self._connection_limit,
            partitions=None if self.loaded is None else self.loaded.partitions,
            partitions_with_records=None if self.loaded is None else self.loaded.partitions_with_records,
            machine_cores=self.bench.machine_cores(),
            cpu_limits=self.bench.stack.facts().cpu_limits,
            usable_cores={each.name: each.usable_cores(self.cell.tasks) for each in kind.services if each.usable_cores},
        )
        return cause_of(evidence_of(self.samples, self.records, around, self._task_metrics), kind.rules)

    def _fetched_bytes_per_record(self) -> float | None:
        """Bytes a record that the tasks received from Kafka; None where tasks that are gone took their counts along."""
        fetched = None if self.cell.before is not None else self._task_metrics.get("tasks_fetched_bytes_total")
        return None if fetched is None or not self._read_all else round(fetched / self.records, 1)

    def _pool(self) -> Pool | None:
        """What the connector's connections waited for in a pooler; None if it had none in one."""
        # A pooler that was started again has counted anew, and is set as its file says.
        found = None if self._is_broken else waits_in(self.samples)
        if found is None or self._pooling is None:
            return found
        return found.model_copy(update=asdict(self._pooling))

    def record(self, block: int, figures: Figures) -> TrialRecord:
        """The record of the trial: what all kinds have, and the figures of its own kind."""
        unchecked = [f"not checked {each}" for each in self._replication.unchecked]
        notes = [*self._of_target, *self._of_replication, *unchecked, *self._of_content, *figures.get("notes", [])]
        noted: Figures = {**figures, "notes": notes}
        path = {"kafka", "connect", *(service.name for service in sink_kind(self.cell.sink).services)}
        return TrialRecord(
            trial=self.names.trial,
            block=block,
            **self.cell.identity(),
            connector=self._connector,
            started_at=self._started_at.isoformat(timespec="milliseconds"),
            seconds=round(self.seconds(), 3),
            records=self.records,
            placement=self._placement(),
            failed_tasks=self._failed_tasks,
            failure=self._failure(),
            connections=self._interference.connections(self.samples, self._connection_limit, alone=self._is_broken),
            pool=self._pool(),
            others=self._interference.met(self.records, self._dead_letters.queue),
            audit=self.audited,
            not_audited=self.not_audited,
            # A service that was started again has counted anew.
            cpu_seconds_per_million={} if self._is_broken else cpu_seconds_per_million(self.samples, self.records),
            jvm_cpu_seconds_per_million={} if self._is_broken else jvm_cpu_per_million(self.samples, self.records),
            peak_memory=memory_peaks(self.samples, path),
            total_peak_memory_bytes=total_memory_peak(self.samples, path),
            disk_bytes_per_record=self._disk_bytes_per_record,
            fetched_bytes_per_record=self._fetched_bytes_per_record(),
            queries=self._asked,
            durability=self._durability,
            reconciliation=self.counts(),
            reasons=self.reasons,
            records_per_write=self._records_per_write,
            lost_ranges=self._lost_ranges,
            duplicated_ranges=self._duplicated_ranges,
            altered_ranges=self._altered_ranges,
            wrong_keys=self._wrong_keys,
            bloat=self._bloat,
            **noted,
        )


def _interrupt_before(error: BaseException) -> Interrupted | None:
    """The interrupt that was on its way when this error was raised, as while something is undone; None if none was."""
    before = error.__context__
    while before is not None and not isinstance(before, Interrupted):
        before = before.__context__
    return before
