"""What a trial reports, without the clients that it uses."""

from sinkbench.analysis.samples import Sample


class Observer:
    """What a trial reports."""

    def phase(self, text: str) -> None:
        """Called when the trial's next step starts."""

    def progress(self, done: int, total: int) -> None:
        """Called with the number of records in the topic or in the sink so far."""

    def sample(self, sample: Sample) -> None:
        """Called with each sample while the connector runs. Must return at once."""

    def fault(self, name: str, over: bool) -> None:
        """Called when the trial's fault begins, and when it is over."""
