"""Selects the stack that a command works on: `local`, `compose`, `kubernetes`, or a stack file of existing clusters."""

from contextlib import suppress
from pathlib import Path

from sinkbench.errors import StackError
from sinkbench.place import IS_INSTALLED
from sinkbench.settings import Settings
from sinkbench.stack import Stack
from sinkbench.stack.local import LocalStack


def find_stack(settings: Settings) -> Stack:
    """Returns the stack of SINKBENCH_STACK if set, else the one that runs here, else the local one."""
    local = LocalStack(settings)
    if "stack" in settings.model_fields_set or local.start_id() is not None:
        return open_stack(settings.stack, settings)
    with suppress(StackError):
        containers = open_stack("compose", settings)
        if containers.start_id() is not None:
            return containers
    return local


def open_stack(choice: str, settings: Settings) -> Stack:
    """Returns the driver for "local", "compose", "kubernetes[:NAMESPACE]" or a stack file's path; else a StackError."""
    if choice == "local":
        return LocalStack(settings)
    if choice == "compose":
        if IS_INSTALLED:
            raise StackError("--stack compose: images are built from a checkout; run it there, or use --stack local")
        from sinkbench.stack.compose import ComposeStack

        return ComposeStack(settings)
    kind, _, namespace = choice.partition(":")
    if kind == "kubernetes":
        from sinkbench.stack.kubernetes import KubernetesStack

        return KubernetesStack(namespace)
    if Path(choice).suffix in (".yaml", ".yml"):
        from sinkbench.stack.external import ExternalStack

        return ExternalStack(Path(choice))
    raise StackError(f"--stack {choice}: give local, compose, kubernetes[:NAMESPACE], or a stack file (FILE.yaml)")
