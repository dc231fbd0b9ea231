"""Shows a run on a terminal and in a browser. Views read `state` in separate threads, so that no measurement waits."""
