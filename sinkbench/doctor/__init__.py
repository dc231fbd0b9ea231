"""What would spoil a race, found before it begins or while it runs.

`look` and `gather` ask the services and the machine and keep what they see as `facts`, plain values. `rules` decide on
these alone, and `diagnosis` sorts what they find; neither touches a service. `mend` changes the little that can be
undone.
"""
