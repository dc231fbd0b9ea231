"""What limits a trial: evidence from its samples, rules, and the verdict. Pure; rules of a single sink are in
`sinks`."""
