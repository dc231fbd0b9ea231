"""The list of what is fetched, with licenses, and the bill of materials."""

import json
from pathlib import Path

import pytest

from scripts.licenses import PAGE, Fetched, bill_of_materials, fetched, maven_artifacts, page
from sinkbench.errors import UserError

POM = """<project xmlns="http://maven.apache.org/POM/4.0.0"><properties><v>1.2</v></properties><dependencies>
<dependency><groupId>{group}</groupId><artifactId>a</artifactId><version>${{v}}</version></dependency>
<dependency><groupId>of.tests</groupId><artifactId>b</artifactId><version>${{v}}</version><scope>test</scope></dependency>
</dependencies></project>"""


@pytest.fixture(scope="module")
def found() -> list[Fetched]:
    return fetched()


def test_the_page_of_licenses_is_current(found: list[Fetched]) -> None:
    assert PAGE.read_text(encoding="utf-8") == page(found), "docs/licenses.md is stale; run scripts/licenses"


def test_the_bill_of_materials_names_every_version_and_nothing_twice(found: list[Fetched]) -> None:
    bill = json.loads(bill_of_materials(found))
    purls = [each["purl"] for each in bill["components"]]
    assert len(purls) == len(set(purls)) == len(found)
    assert {"pkg:deb/debian/pgbouncer", "pkg:deb/debian/maven"} <= set(purls)
    assert any(each.startswith("pkg:maven/org.postgresql/postgresql@") for each in purls)
    assert [each for each in purls if not each.startswith("pkg:deb/") and "@" not in each] == []
    assert bill_of_materials(found) == bill_of_materials(fetched())


def test_an_artifact_of_an_unknown_license_is_refused(tmp_path: Path) -> None:
    for project, group in (("connect", "org.apache.kafka"), ("elasticsearch", "org.slf4j")):
        (tmp_path / project).mkdir()
        (tmp_path / project / "pom.xml").write_text(POM.format(group=group), encoding="utf-8")
    assert [(each.name, each.version, each.license) for each in maven_artifacts(tmp_path)] == [
        ("org.apache.kafka:a", "1.2", "Apache-2.0"),
        ("org.slf4j:a", "1.2", "MIT"),
    ]
    (tmp_path / "connect" / "pom.xml").write_text(POM.format(group="org.unknown"), encoding="utf-8")
    with pytest.raises(UserError, match=r"org\.unknown: its license is not known"):
        list(maven_artifacts(tmp_path))
