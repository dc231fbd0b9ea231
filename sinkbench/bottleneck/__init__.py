"""What limits a trial: the evidence of its samples, the rules that look at it, and the verdict.

All of it is pure; a rule that only one sink has stands with that sink in `sinks`."""
