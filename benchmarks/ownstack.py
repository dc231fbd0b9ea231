"""The local stack for a benchmark, in which no race is going on."""

from collections.abc import Iterator
from contextlib import closing, contextmanager

from sinkbench.plan.plan import Plan
from sinkbench.race.leftovers import check_alone
from sinkbench.race.lock import only_race
from sinkbench.settings import CHECKOUT, load_settings
from sinkbench.stack.local import LocalStack
from sinkbench.trial.cluster import Cluster


@contextmanager
def local_cluster(plan: Plan) -> Iterator[Cluster]:
    """The local stack with nobody else's work on it; one that was down is stopped again."""
    stack = LocalStack(load_settings())
    with only_race(stack.lock_file, CHECKOUT, plan.name):
        running = stack.start_id() is not None
        try:
            stack.up(lambda line: None)
            with closing(Cluster(stack, plan, CHECKOUT)) as cluster:
                check_alone(cluster)
                yield cluster
        finally:
            if not running:
                stack.down()
