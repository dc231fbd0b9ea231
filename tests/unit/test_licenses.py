"""The list of what is fetched, with licenses, and the bill of materials."""

import json

from scripts.licenses import PAGE, bill_of_materials, fetched, page


def test_the_page_of_licenses_is_current() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(fetched()), "licenses.md is stale; run scripts/licenses"


def test_the_bill_of_materials_names_every_version_and_nothing_twice() -> None:
    found = fetched()
    bill = json.loads(bill_of_materials(found))
    purls = [each["purl"] for each in bill["components"]]
    assert len(purls) == len(set(purls)) == len(found)
    assert {"pkg:deb/debian/pgbouncer", "pkg:deb/debian/maven"} <= set(purls)
    assert any(each.startswith("pkg:maven/org.postgresql/postgresql@") for each in purls)
    assert [each for each in purls if not each.startswith("pkg:deb/") and "@" not in each] == []
