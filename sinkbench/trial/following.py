"""A connector that runs: it is started, sampled and watched until it is done, or nothing more is to be expected."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace

from sinkbench.analysis.samples import Sample
from sinkbench.errors import ConnectError, ReasonCode, ServiceError, TrialFailed
from sinkbench.results import Reason
from sinkbench.services.connect import ConnectorStatus, is_even
from sinkbench.trial.resources import Resources
from sinkbench.trial.sampler import Sampler, fresh_samples
from sinkbench.trial.stop import Watch, died, exhausted_in_words, used_up_heaps
from sinkbench.trial.values import Timeline

__all__ = ["Following", "uneven"]


class Following:
    """What is seen of a running connector. Use as a context: it keeps what ends the run early, but an interrupt.

    Attributes:
        seen: all so far, but for the samples.
    """

    def __init__(self, own: Resources, sampler: Sampler, watch: Watch) -> None:
        self._own = own
        self._sampler = sampler
        self._watch = watch
        self.seen = Timeline()

    def __enter__(self) -> Following:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> bool:
        if not isinstance(error, TrialFailed | ServiceError | OSError):
            return False
        self.seen = replace(self.seen, failed=error)
        return True

    @property
    def timeline(self) -> Timeline:
        """What was seen, when it is over."""
        return replace(self.seen, samples=self._sampler.samples)

    @property
    def placement(self) -> Mapping[str, int] | None:
        """Tasks of each worker, once all have started, or failed to."""
        return self.seen.placement

    def now(self) -> float:
        """This moment on the clock of the samples, in seconds."""
        return self._sampler.now()

    def settled(self, status: ConnectorStatus) -> None:
        """Takes in that the connector's tasks were placed, perhaps anew."""
        self.seen = replace(self.seen, placement=self._own.placement(status))

    @contextmanager
    def samples(self) -> Iterator[Iterator[Sample]]:
        """Starts the probes and the connector, and gives the samples as they come until it is over.

        Raises:
            TrialFailed: Connect refuses the connector, a service dies, or the probes hang.
        """
        self.seen = replace(self.seen, from_us=self._sampler.start(), created=True)
        try:
            self.seen = replace(self.seen, connector=self._own.start_connector())
            yield self._until_over()
        except ConnectError as error:
            raise TrialFailed(str(error), ReasonCode.CONNECT_REFUSED) from None
        except TrialFailed as error:
            raise self._why_silent(error) from None
        finally:
            self._sampler.stop()

    def _until_over(self) -> Iterator[Sample]:
        own = self._own
        for fresh in fresh_samples(self._sampler):
            own.observer.progress(min(fresh[-1].stored or 0, own.records), own.records)
            started = (fresh[-1].tasks_running or 0) + (fresh[-1].tasks_failed or 0)
            if self.placement is None and started == own.cell.at_start.tasks and (status := own.status()) is not None:
                self.settled(status)
            for sample in fresh:
                own.observer.sample(sample)
                yield sample
            if (end := next(filter(None, map(self._watch.see, fresh)), None)) is None:
                continue
            if end.dead and end.reason is not None:
                # What is asked of it now would fail, or wait until its client gives up.
                raise self._died(end.reason, end.dead)
            last = own.status()
            # All may be stored before a sample has seen every task run.
            if self.placement is None and last is not None and last.settled(own.cell.tasks):
                self.settled(last)
            self.seen = replace(self.seen, last=last, reasons=[] if end.reason is None else [end.reason])
            return

    def _why_silent(self, error: TrialFailed) -> TrialFailed:
        """That a service has died, if the probes had no answer; any other error as it was.

        A JVM whose heap is used up answers nothing for long before it ends.
        """
        if error.code != ReasonCode.PROBES_SILENT:
            return error
        stack = self._own.cluster.stack
        with suppress(ServiceError, OSError):
            # Of an external cluster it is not known that it has ended, only that it does not answer.
            dead = sorted(each.name for each in stack.services() if each.state == "dead" and each.exit_code is not None)
            if dead:
                return self._died(died(dead, stack.usage().troubles), dead)
        return error

    def _died(self, reason: Reason, dead: Sequence[str]) -> TrialFailed:
        """What ends a trial in which these services have died: for memory, if their exit codes say so."""
        with suppress(ServiceError, OSError):
            if used_up := used_up_heaps(self._own.cluster.stack.services(), dead):
                return TrialFailed(exhausted_in_words(used_up), ReasonCode.OUT_OF_MEMORY)
        return TrialFailed(reason.text, reason.code)


def uneven(placement: Mapping[str, int] | None, workers: int, tasks: int) -> str | None:
    """That the tasks are not spread evenly over the workers, in words; None if they are."""
    placed = dict(placement or {})
    # Where the workers' ids are not known beforehand, one without a task is not among them.
    busy = sum(number > 0 for number in placed.values())
    if is_even(placed) and busy >= min(workers, tasks):
        return None
    return f"the tasks are spread unevenly over the {workers} workers: {placed}"
