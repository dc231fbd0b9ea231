"""The containers' tests: a package, so that what is made once for them ends with them, before other tests begin."""
