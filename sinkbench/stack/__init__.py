"""Where the services run: a driver for each place, with the interface `Stack`. Trials and results are not known here.

`protocol` is that interface, `endpoint` how services are reached, `spec` what a service is.
"""

from sinkbench.stack.endpoint import Endpoint, Endpoints
from sinkbench.stack.protocol import (
    Allowance,
    Facts,
    Faults,
    Isolation,
    MachineCpu,
    Promotion,
    Proxies,
    ProxyTarget,
    Say,
    ServiceState,
    SmallDisks,
    Stack,
    Usage,
)

__all__ = [
    "Allowance",
    "Endpoint",
    "Endpoints",
    "Facts",
    "Faults",
    "Isolation",
    "MachineCpu",
    "Promotion",
    "Proxies",
    "ProxyTarget",
    "Say",
    "ServiceState",
    "SmallDisks",
    "Stack",
    "Usage",
]
