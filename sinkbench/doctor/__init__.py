"""Finds what invalidates a race, before it begins or while it runs. See docs/doctor.md. `look` gathers facts, the pure
rules in `rules` judge them, and `diagnosis` sorts the findings."""
