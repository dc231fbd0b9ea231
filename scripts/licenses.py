"""What sinkbench fetches, with versions and licenses: docs/licenses.md, and a bill of materials (CycloneDX, JSON)."""

import json
import re
import sys
from collections import defaultdict
from collections.abc import Iterator
from importlib.metadata import metadata
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree as ET

from packaging.requirements import Requirement

from sinkbench import __version__
from sinkbench.errors import UserError
from sinkbench.place import CHECKOUT
from sinkbench.stack.tools import PROJECTS

PAGE = CHECKOUT / "docs" / "licenses.md"
# Names in metadata that are older than SPDX.
SPDX = {
    "Apache Software License": "Apache-2.0",
    "ISC License (ISCL)": "ISC",
    "MIT License": "MIT",
    "Mozilla Public License 2.0 (MPL 2.0)": "MPL-2.0",
}
VAGUE = ("BSD License", "BSD-derived")
"""What metadata tell that is no expression of SPDX."""
# By the beginning of a Maven group: several artifacts have no license in their own POM.
GROUPS = {
    "com.fasterxml.jackson": "Apache-2.0",
    "io.debezium": "Apache-2.0",
    "io.prometheus": "Apache-2.0",
    "org.apache": "Apache-2.0",
    "org.elasticsearch.client": "Apache-2.0",
    # The server under any of three licenses, as its archive tells; the modules of x-pack under one.
    "org.elasticsearch.distribution": "(AGPL-3.0-only OR SSPL-1.0 OR Elastic-2.0) AND Elastic-2.0",
    "org.postgresql": "BSD-2-Clause",
    "org.slf4j": "MIT",
}
# The packages of scripts/setup; their version is the distribution's.
DEBIAN = {
    "golang-go": "BSD-3-Clause",
    "libarchive-tools": "BSD-2-Clause",
    "maven": "Apache-2.0",
    "openjdk-21-jdk-headless": "GPL-2.0-only WITH Classpath-exception-2.0",
    "pgbouncer": "ISC",
    "postgresql": "PostgreSQL",
    "python3": "PSF-2.0",
}
GO = {"github.com/Shopify/toxiproxy/v2": "MIT"}
_POM = "{http://maven.apache.org/POM/4.0.0}"


class Fetched(NamedTuple):
    """`kind` is the type of its package URL; the version is "" where the machine's distribution decides."""

    kind: str
    name: str
    version: str
    license: str

    @property
    def purl(self) -> str:
        kind = "deb/debian" if self.kind == "deb" else self.kind
        return f"pkg:{kind}/{self.name.replace(':', '/')}{f'@{self.version}' if self.version else ''}"


def python_distributions(requirements: Path) -> Iterator[Fetched]:
    """Those that are installed on Linux. Raises PackageNotFoundError if one is not installed here."""
    for line in re.findall(r"^[a-z0-9].*==[^\\\n]*", requirements.read_text(encoding="utf-8"), re.MULTILINE):
        wanted = Requirement(line)
        if wanted.marker is None or wanted.marker.evaluate():
            yield Fetched("pypi", wanted.name, str(wanted.specifier).removeprefix("=="), license_of(wanted.name))


def license_of(distribution: str) -> str:
    """As its metadata tell: the SPDX expression, a name without spaces, or the classifier."""
    found = metadata(distribution)
    told = found.get("License") or ""
    classified = [each.split(" :: ")[-1] for each in found.get_all("Classifier") or [] if each.startswith("License ::")]
    names = [found.get("License-Expression"), told if " " not in told else "", *classified, told.split(" (")[0]]
    first = next(name for name in names if name)
    return SPDX.get(first, first)


def maven_artifacts(checkout: Path) -> Iterator[Fetched]:
    """What the POMs name, without what tests alone need. Raises UserError for a group of an unknown license."""
    for project in PROJECTS:
        trees = [ET.parse(each).getroot() for each in sorted((checkout / project).rglob("pom.xml"))]  # noqa: S314 - ours
        versions = {
            each.tag.removeprefix(_POM): each.text for tree in trees for each in tree.iterfind(f"{_POM}properties/*")
        }
        found = [each for tree in trees for tag in ("dependency", "artifactItem") for each in tree.iter(_POM + tag)]
        for each in found:
            group, name, version, scope = (
                each.findtext(_POM + tag, "") for tag in ("groupId", "artifactId", "version", "scope")
            )
            if scope not in ("test", "import"):
                known = next((GROUPS[begin] for begin in GROUPS if group.startswith(begin)), None)
                if known is None:
                    raise UserError(f"{group}: its license is not known; name it in scripts/licenses.py")
                yield Fetched("maven", f"{group}:{name}", str(versions[version.strip("${}")]), known)


def go_modules(checkout: Path) -> Iterator[Fetched]:
    text = (checkout / "toxiproxy" / "go.mod").read_text(encoding="utf-8")
    for name, license_ in GO.items():
        found = re.search(rf"{name} (v\S+)", text)
        yield Fetched("golang", name, found[1] if found else "", license_)


def fetched(checkout: Path = CHECKOUT) -> list[Fetched]:
    """Everything, sorted, nothing twice."""
    debian = (Fetched("deb", name, "", license_) for name, license_ in DEBIAN.items())
    python = python_distributions(checkout / "requirements.txt")
    return sorted({*python, *maven_artifacts(checkout), *go_modules(checkout), *debian})


def page(found: list[Fetched]) -> str:
    """The licenses, each with what has it."""
    titles = {"pypi": "Python", "maven": "Maven", "golang": "Go", "deb": "Debian"}
    lines = [
        "# Licenses",
        "",
        "sinkbench is Apache-2.0. `scripts/licenses` lists what it fetches; `--bom` adds versions.",
    ]
    for kind, title in titles.items():
        by_license = defaultdict(list)
        for each in found:
            if each.kind == kind:
                by_license[each.license].append(each.name.split(":")[-1])
        lines += ["", f"## {title}", ""]
        lines += [f"- {license_}: {', '.join(sorted(set(names)))}" for license_, names in sorted(by_license.items())]
    return "\n".join(lines) + "\n"


def bill_of_materials(found: list[Fetched]) -> str:
    """CycloneDX 1.6 as JSON; without a time, so that the same versions give the same bytes."""
    components = [
        {
            "type": "library",
            "name": each.name,
            **({"version": each.version} if each.version else {}),
            "purl": each.purl,
            "licenses": [
                {"license": {"name": each.license}} if each.license in VAGUE else {"expression": each.license}
            ],
        }
        for each in found
    ]
    tool = {
        "component": {
            "type": "application",
            "name": "sinkbench",
            "version": __version__,
            "licenses": [{"expression": "Apache-2.0"}],
        }
    }
    return (
        json.dumps(
            {"bomFormat": "CycloneDX", "specVersion": "1.6", "version": 1, "metadata": tool, "components": components},
            indent=2,
        )
        + "\n"
    )


def main() -> None:
    found = fetched()
    if "--bom" in sys.argv[1:]:
        sys.stdout.write(bill_of_materials(found))
    else:
        PAGE.write_text(page(found), encoding="utf-8")


if __name__ == "__main__":
    main()
