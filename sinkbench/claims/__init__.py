"""Published claims: a file each in `claims/`, and what stored runs say of them. It starts nothing."""
