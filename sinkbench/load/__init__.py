"""The load generators: services, or one process of the controller where there are none."""
