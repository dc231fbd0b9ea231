"""What invalidates a race, found before it begins or while it runs.

`look` gathers facts from the services, the machine and the plan; the rules in `rules` decide on these alone, and
`diagnosis` sorts what they find. See docs/doctor.md.
"""
