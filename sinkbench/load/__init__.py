"""The load generators: services, or a process that the controller starts where there are none.

They fill a topic and report the result. A trial decides what is offered, and when."""
