"""Where the services run: one driver for each place, with the interface `Stack`. No trials or results here."""

from sinkbench.stack.endpoint import Endpoint, Endpoints
from sinkbench.stack.protocol import (
    Allowance,
    Facts,
    Faults,
    MachineCpu,
    ProxyTarget,
    Say,
    ServiceState,
    Stack,
    Usage,
)

__all__ = [
    "Allowance",
    "Endpoint",
    "Endpoints",
    "Facts",
    "Faults",
    "MachineCpu",
    "ProxyTarget",
    "Say",
    "ServiceState",
    "Stack",
    "Usage",
]
