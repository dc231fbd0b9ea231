"""An observer of a trial that keeps everything to itself."""

from sinkbench.analysis.samples import Sample

__all__ = ["Silent"]


class Silent:
    """Is told what goes on, and does nothing."""

    def phase(self, text: str) -> None:
        return

    def progress(self, done: int, total: int) -> None:
        return

    def sample(self, sample: Sample) -> None:
        return
