"""What becomes of a pipeline whose tasks are changed, or in which something is broken."""

from __future__ import annotations

from sinkbench.results.base import Amount, Record, Whole
from sinkbench.results.spread import RatioTo

__all__ = ["Act", "Recovery", "Rescale"]


class Rescale(Record):
    """A running connector that was given another number of tasks in the middle of its drain."""

    tasks_before: Whole
    asked_at_seconds: Amount | None = None
    """When the new number was asked for, on the samples' clock; None of several trials together."""
    rebalance_seconds: Amount | None = None
    """From then until the group was stable with a member for each new task."""
    standstill_seconds: Amount | None = None
    """The longest time from then on in which nothing was stored."""
    before_records_per_second: Amount | None = None
    """The rate before; the trial's own is that after."""
    to_cold: RatioTo | None = None
    """Of the rate after to that of a cold start with as many tasks, over all trials; None of a single trial."""


class Act(Record):
    """A manual step that a pipeline needed to recover; the trial took it."""

    seconds: Amount
    """When, after the moment of the fault."""
    command: str
    """A request to Connect's REST interface."""


class Recovery(Record):
    """What became of a pipeline in which something was broken on purpose. Its times count from the moment of the fault.

    Over several trials: medians of times and rates, the most of what was counted, the acts of the first trial with any.
    """

    target: str
    """What was broken: a service or worker by its name, the network to a service, or the connector; several with
    commas; empty if nothing was."""
    began_seconds: Amount | None = None
    """The moment of the fault, on the samples' clock; None of several trials together, as the next one."""
    ended_seconds: Amount | None = None
    """When it was undone, and what was broken was ready again."""
    recovered: bool = False
    """Whether in the end all records were read and no task was FAILED."""
    first_record_seconds: Amount | None = None
    """Until the first record was stored after nothing was; 0 if it never stood still, None if none came any more."""
    standstill_seconds: Amount | None = None
    """The longest time in which nothing was stored."""
    rate_seconds: Amount | None = None
    """Until the rate was as before; 0 if it never fell, None if that was not seen."""
    lag_seconds: Amount | None = None
    """Until the lag was as before; 0 if it never rose, None if that was not seen."""
    before_records_per_second: Amount | None = None
    during_records_per_second: Amount | None = None
    """From the moment of the fault until it was undone and the rate was as before."""
    after_records_per_second: Amount | None = None
    """From then on until the last record was stored."""
    failed_tasks: Whole | None = 0
    """The most tasks that were FAILED at once; None if Connect never answered."""
    failed_seconds: Amount | None = None
    """Until Connect said so; None if none was."""
    told_seconds: Amount | None = None
    """Until Connect said of any task that it did not run; None if it never did."""
    stuck_seconds: Amount | None = 0.0
    """The longest time in which nothing was stored though Connect called every task RUNNING; None without an answer."""
    late_records: Whole | None = None
    """Records that were stored more than 5 s after they were due; None if it is not known when they came."""
    latest_seconds: Amount | None = None
    """From when a record was due until it was stored, of the latest."""
    connections_before: Whole | None = None
    connections_after: Whole | None = None
    """In the end, while the connector still ran."""
    connections_left: Whole | None = None
    """When it was gone."""
    poisoned: Whole | None = None
    """Bad records that were put into the topic next to those of the load; None of another fault."""
    poison_stored: Whole | None = None
    """Those of them that are in the sink."""
    poison_dead: Whole | None = None
    """Those of them that are in the connector's dead letter queue; None if it has none. What is in neither place was
    rejected without a word, unless the pipeline did not recover."""
    dead_letters: Whole | None = None
    """Records that the connector has put into its dead letter queue; None if it has none."""
    acts: list[Act] = []
    """Empty if it recovered by itself."""

    @property
    def is_silent(self) -> bool:
        """Whether nothing was stored any more, though all may have been read."""
        return self.rate_seconds is None and self.first_record_seconds is None
