"""Writes the software bill of materials of a build, as SPDX 2.3 and as CycloneDX 1.6, both in JSON.

  sbom.py PROGRAM DIR --version VERSION [--libraries DEPENDS] [--system DIRECTORY]

Writes DIR/sbom.spdx.json and DIR/sbom.cdx.json, and prints the value of Built-Using for a Debian package.

--libraries DEPENDS  the value of a Debian package's Depends: the libraries that the program loads
--system DIRECTORY   the database of dpkg of an image: all its packages are parts

The versions of Debian packages whose code is in the program are those that the program recorded when it was built. Swift packages come
from Package.resolved, licences from docs/NOTICES.md. The time is $SOURCE_DATE_EPOCH. The same input gives the same bytes.
"""
import argparse
import datetime
import hashlib
import json
import os
import pathlib
import re
import subprocess
import sys
import uuid
from urllib.parse import quote

# The licences of the Debian sources whose code can be in the program (scripts/libav).
LICENCES = {
    "ffmpeg": "GPL-2.0-or-later", "aom": "BSD-2-Clause", "libvpx": "BSD-3-Clause", "libwebp": "BSD-3-Clause",
    "libpng1.6": "libpng-2.0", "libjpeg-turbo": "IJG AND BSD-3-Clause", "lcms2": "MIT"}
RUNTIME = " with runtime library exception"
OWN = "GPL-3.0-or-later"


class Part:
    """A part of the program or of the image, and how the program has it: STATIC_LINK, DYNAMIC_LINK or CONTAINS."""

    def __init__(self, kind, name, version, licence, purl, location, relation):
        self.name, self.version, self.licence, self.purl = name, version, licence, purl
        self.location, self.relation = location, relation
        self.reference = re.sub(r"[^A-Za-z0-9.-]", "-", f"SPDXRef-{kind}-{name}")


def run(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def distribution():
    return re.search(r'^ID="?(\w+)', pathlib.Path("/etc/os-release").read_text(), re.M)[1]


def debian_purl(name, version, architecture):
    return f"pkg:deb/{distribution()}/{quote(name, safe='.-')}@{quote(version, safe=':.~-')}?arch={architecture}"


def recorded(program):
    """Name and version of each Debian source whose code the program contains: the text that scripts/lib/build.sh had it record."""
    pair = rb"[a-z0-9][a-z0-9.+-]+=[0-9A-Za-z.+:~-]+"
    found = re.search(rb"(?<![0-9A-Za-z.+,=:~-])((?:" + pair + rb",)*ffmpeg=[0-9A-Za-z.+:~-]+(?:," + pair + rb")*)\0", program)
    return [pair.split("=") for pair in found[1].decode().split(",")] if found else []


def swift_parts():
    """The Swift packages, and the toolchain with its runtime."""
    notices = pathlib.Path("docs/NOTICES.md").read_text()
    rows = re.findall(r"^\| \[([^\]]+)\]\([^)]*\)[^|]*\| [^|]* \| ([^|]*) \|", notices, re.M)
    licences = {name.lower(): re.split(r"[,;]", cell)[0].strip().replace(RUNTIME, " WITH Swift-exception") for name, cell in rows}
    pins = json.loads(pathlib.Path("Package.resolved").read_text())["pins"]
    for pin in sorted(pins, key=lambda pin: pin["identity"]):
        location, state = pin["location"].removesuffix(".git"), pin["state"]
        name = location.rsplit("/", 1)[1]
        yield Part(
            "swift", name, state["version"], licences.get(name.lower()),
            f"pkg:swift/{location.removeprefix('https://')}@{state['version']}", f"git+{location}@{state['revision']}", "STATIC_LINK")
    swift = re.search(r"Swift version (\S+)", run("swift", "--version"))[1]
    yield Part(
        "toolchain", "swift", swift, "Apache-2.0 WITH Swift-exception", f"pkg:generic/swift@{swift}",
        "https://www.swift.org/install", "STATIC_LINK")


def debian_parts(program, libraries, system):
    place = "https://snapshot.debian.org"
    for name, version in recorded(program):
        yield Part("source", name, version, LICENCES.get(name), debian_purl(name, version, "source"), place, "STATIC_LINK")
    query = ["dpkg-query", *([f"--admindir={system}"] if system else []), "-W", "-f", "${Package} ${Version} ${Architecture}\\n"]
    wanted = sorted({re.split(r"[ (|:]", each.strip())[0] for each in libraries.split(",")}) if libraries else []
    for line in sorted(set(run(*query, *wanted).splitlines())) if wanted or system else []:
        name, version, architecture = line.split()
        yield Part(
            "debian", name, version, None, debian_purl(name, version, architecture), place, "CONTAINS" if system else "DYNAMIC_LINK")


def spdx(name, version, digest, created, parts, is_image):
    own = {
        "name": "gifreel", "SPDXID": "SPDXRef-gifreel", "versionInfo": version, "downloadLocation": "NOASSERTION", "filesAnalyzed": False,
        "licenseConcluded": OWN, "licenseDeclared": "MIT", "copyrightText": "NOASSERTION", "primaryPackagePurpose": "APPLICATION",
        "checksums": [{"algorithm": "SHA256", "checksumValue": digest}]}
    packages, relations = [own], []
    top = "SPDXRef-gifreel"
    if is_image:
        top = "SPDXRef-image"
        packages.insert(0, {
            **{key: value for key, value in own.items() if key != "checksums"}, "name": "gifreel-image", "SPDXID": top,
            "primaryPackagePurpose": "CONTAINER"})
        relations.append((top, "CONTAINS", "SPDXRef-gifreel"))
    for part in parts:
        packages.append({
            "name": part.name, "SPDXID": part.reference, "versionInfo": part.version, "downloadLocation": part.location,
            "filesAnalyzed": False, "licenseConcluded": "NOASSERTION", "licenseDeclared": part.licence or "NOASSERTION",
            "copyrightText": "NOASSERTION",
            "externalRefs": [{"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl", "referenceLocator": part.purl}]})
        relations.append((top if part.relation == "CONTAINS" else "SPDXRef-gifreel", part.relation, part.reference))
    return {
        "spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0", "SPDXID": "SPDXRef-DOCUMENT", "name": name,
        "documentNamespace": f"https://spdx.org/spdxdocs/{name}-{uuid.uuid5(uuid.NAMESPACE_URL, digest)}",
        "creationInfo": {"created": created, "creators": ["Tool: gifreel-sbom"]},
        "packages": packages,
        "relationships": [
            {"spdxElementId": one, "relationshipType": kind, "relatedSpdxElement": other}
            for one, kind, other in [("SPDXRef-DOCUMENT", "DESCRIBES", top), *relations]]}


def cyclonedx(name, version, digest, created, parts, is_image):
    own = {
        "type": "application", "bom-ref": "gifreel", "name": "gifreel", "version": version, "purl": f"pkg:generic/gifreel@{version}",
        "hashes": [{"alg": "SHA-256", "content": digest}], "licenses": [{"expression": OWN}]}
    components = [own] if is_image else []
    for part in parts:
        components.append({
            "type": "library", "bom-ref": part.purl, "name": part.name, "version": part.version, "purl": part.purl,
            **({"licenses": [{"expression": part.licence}]} if part.licence else {}),
            "properties": [{"name": "gifreel:linkage", "value": part.relation.removesuffix("_LINK").lower()}]})
    linked = [part.purl for part in parts if part.relation != "CONTAINS"]
    contained = [part.purl for part in parts if part.relation == "CONTAINS"]
    dependencies = [{"ref": "gifreel", "dependsOn": linked}]
    if is_image: dependencies.insert(0, {"ref": "image", "dependsOn": ["gifreel", *contained]})
    subject = {"type": "container", "bom-ref": "image", "name": "gifreel-image", "version": version} if is_image else own
    return {
        "bomFormat": "CycloneDX", "specVersion": "1.6", "serialNumber": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, name + digest)}",
        "version": 1,
        "metadata": {
            "timestamp": created, "tools": {"components": [{"type": "application", "name": "gifreel-sbom"}]}, "component": subject},
        "components": components, "dependencies": dependencies}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("directory")
    parser.add_argument("--version", required=True)
    parser.add_argument("--libraries", default="")
    parser.add_argument("--system")
    given = parser.parse_args()
    program = pathlib.Path(given.program).read_bytes()
    parts = [*swift_parts(), *debian_parts(program, given.libraries, given.system)]
    if not any(part.name == "ffmpeg" or part.name.startswith("libavcodec") for part in parts):
        sys.exit(f"{given.program} does not know its libraries: scripts/run and scripts/package build programs that do.")
    time = datetime.datetime.fromtimestamp(int(os.environ["SOURCE_DATE_EPOCH"]), datetime.timezone.utc)
    what = "image" if given.system else "program"
    about = (
        f"gifreel-{what}-{given.version}-{os.uname().machine}", given.version, hashlib.sha256(program).hexdigest(),
        time.strftime("%Y-%m-%dT%H:%M:%SZ"), parts, bool(given.system))
    for name, document in [("spdx", spdx(*about)), ("cdx", cyclonedx(*about))]:
        pathlib.Path(given.directory, f"sbom.{name}.json").write_text(json.dumps(document, indent=1) + "\n")
    print(", ".join(f"{name} (= {version})" for name, version in recorded(program)))


if __name__ == "__main__":
    main()
