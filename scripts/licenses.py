"""What sinkbench fetches, with versions and licenses: licenses.md, and a bill of materials (CycloneDX, JSON)."""

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

PAGE = CHECKOUT / "licenses.md"
TITLES = {"pypi": "Python", "maven": "Maven", "golang": "Go", "deb": "Debian"}
# Names in metadata that are older than SPDX; those of BSD are vague.
SPDX = {"Apache Software License": "Apache-2.0", "ISC License (ISCL)": "ISC", "MIT License": "MIT"}
VAGUE = ("BSD License", "BSD-derived")
# By the beginning of a Maven group: several artifacts have no license in their own POM.
GROUPS = {
    **dict.fromkeys(("com.fasterxml", "io.debezium", "io.prometheus", "org.apache", "tools.profiler"), "Apache-2.0"),
    **{"org.elasticsearch.client": "Apache-2.0", "org.postgresql": "BSD-2-Clause", "org.slf4j": "MIT"},
    # The server under any of three licenses, as its archive tells; the modules of x-pack under one.
    "org.elasticsearch.distribution": "(AGPL-3.0-only OR SSPL-1.0 OR Elastic-2.0) AND Elastic-2.0",
}
# The packages of scripts/setup; their version is the distribution's.
DEBIAN = {
    **{"golang-go": "BSD-3-Clause", "libarchive-tools": "BSD-2-Clause", "maven": "Apache-2.0", "pgbouncer": "ISC"},
    **{"openjdk-21-jdk-headless": "GPL-2.0-only WITH Classpath-exception-2.0", "postgresql": "PostgreSQL"},
    "python3": "PSF-2.0",
}
TOXIPROXY = "github.com/Shopify/toxiproxy/v2"
_POM, ARTIFACTS = "{http://maven.apache.org/POM/4.0.0}", ("dependency", "artifactItem")


class Fetched(NamedTuple):
    """`kind` is the type of its package URL; the version is "" where the machine's distribution decides."""

    kind: str
    name: str
    version: str
    license: str


def python_distributions(requirements: Path) -> Iterator[Fetched]:
    """Those for this machine. Raises PackageNotFoundError if one is not installed."""
    for line in re.findall(r"^[a-z0-9].*==[^\\\n]*", requirements.read_text(encoding="utf-8"), re.MULTILINE):
        wanted = Requirement(line)
        if wanted.marker is None or wanted.marker.evaluate():
            yield Fetched("pypi", wanted.name, str(wanted.specifier).removeprefix("=="), license_of(wanted.name))


def license_of(distribution: str) -> str:
    """As its metadata tell: the SPDX expression, a name without spaces, or the classifier."""
    found = metadata(distribution)
    told = "".join(found.get_all("License") or [])
    classified = [each.split(" :: ")[-1] for each in found.get_all("Classifier") or [] if each.startswith("License ::")]
    expressed = found.get_all("License-Expression") or []
    names: list[str] = [*expressed, told if " " not in told else "", *classified, told.split(" (")[0]]
    return next(SPDX.get(name, name) for name in names if name)


def maven_artifacts(checkout: Path) -> Iterator[Fetched]:
    """What the POMs name, without what tests alone need. Raises UserError for a group of an unknown license."""
    for project in PROJECTS:
        trees = [ET.parse(each).getroot() for each in sorted((checkout / project).rglob("pom.xml"))]  # noqa: S314 - ours
        properties = [each for tree in trees for each in tree.iterfind(f"{_POM}properties/*")]
        versions = {f"${{{each.tag.removeprefix(_POM)}}}": each.text for each in properties}
        for each in (each for tree in trees for tag in ARTIFACTS for each in tree.iter(_POM + tag)):
            group, name, version = (each.findtext(_POM + tag, "") for tag in ("groupId", "artifactId", "version"))
            if each.findtext(_POM + "scope") in ("test", "import"):
                continue
            known = next((GROUPS[begin] for begin in GROUPS if group.startswith(begin)), None)
            if known is None:
                raise UserError(f"{group}: its license is not known; name it in scripts/licenses.py")
            yield Fetched("maven", f"{group}:{name}", versions[version] or "", known)


def fetched(checkout: Path = CHECKOUT) -> list[Fetched]:
    """Everything, sorted, nothing twice."""
    pinned = re.search(rf"{TOXIPROXY} (v\S+)", (checkout / "toxiproxy" / "go.mod").read_text(encoding="utf-8"))
    found = {Fetched("golang", TOXIPROXY, pinned[1] if pinned else "", "MIT"), *maven_artifacts(checkout)}
    found |= {Fetched("deb", name, "", license_) for name, license_ in DEBIAN.items()}
    return sorted({*found, *python_distributions(checkout / "requirements.txt")})


def page(found: list[Fetched]) -> str:
    """The licenses, each with what has it: distributions, Maven groups, modules, packages."""
    lines = ["# Licenses", "", "`scripts/licenses` lists what sinkbench fetches; `--bom` adds versions."]
    for kind, title in TITLES.items():
        having = defaultdict(set)
        for each in found:
            if each.kind == kind:
                having[each.license].add(each.name.split(":")[0])
        lines += ["", f"## {title}", "", *(f"- {key}: {', '.join(sorted(having[key]))}" for key in sorted(having))]
    return "\n".join(lines) + "\n"


def bill_of_materials(found: list[Fetched]) -> str:
    """CycloneDX 1.6 as JSON; without a time, so that the same versions give the same bytes."""

    def component(each: Fetched) -> dict[str, object]:
        purl = f"pkg:{each.kind.replace('deb', 'deb/debian')}/{each.name.replace(':', '/')}"
        version = {"version": each.version, "purl": f"{purl}@{each.version}"} if each.version else {"purl": purl}
        terms = {"license": {"name": each.license}} if each.license in VAGUE else {"expression": each.license}
        return {"type": "library", "name": each.name, **version, "licenses": [terms]}

    about = {"component": {"type": "application", "name": "sinkbench", "version": __version__}}
    bill = {"bomFormat": "CycloneDX", "specVersion": "1.6", "version": 1, "metadata": about}
    return json.dumps({**bill, "components": [component(each) for each in found]}, indent=2) + "\n"


if __name__ == "__main__":
    if "--bom" in sys.argv[1:]:
        sys.stdout.write(bill_of_materials(fetched()))
    else:
        PAGE.write_text(page(fetched()), encoding="utf-8")
