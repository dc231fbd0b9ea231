"""Published claims: a file each in `claims/`, and what stored runs say of them. Pure: nothing here starts or measures."""
