"""What limits a trial: evidence from its samples, rules, and the verdict. Pure; a sink's rules are in `sinks`."""
