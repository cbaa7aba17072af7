"""Prints the software bill of materials of a build in SPDX 2.3 (JSON).

  sbom.py VERSION ARCHITECTURE LIBRARIES PROGRAM

LIBRARIES is the value of a Debian package's Depends. Swift packages come from Package.resolved, licences from docs/NOTICES.md, versions of
statically linked libraries from the installed packages. The time is $SOURCE_DATE_EPOCH. The same input gives the same bytes.
"""
import datetime
import hashlib
import json
import os
import re
import subprocess
import sys
import uuid

# Debian packages whose code is in the program (scripts/libav).
STATIC = {
    "libavcodec-dev": "GPL-2.0-or-later", "libaom-dev": "BSD-2-Clause", "libvpx-dev": "BSD-3-Clause", "libwebp-dev": "BSD-3-Clause",
    "libpng-dev": "libpng-2.0", "liblcms2-dev": "MIT"}
RUNTIME = " with runtime library exception"


def licence(words):
    """An SPDX expression for a cell of the notices."""
    words = re.split(r"[,;]", words)[0].strip()
    return words.replace(RUNTIME, " WITH Swift-exception") if words.startswith("Apache") else words


def installed(package):
    command = ["dpkg-query", "-W", "-f", "${source:Package} ${Version}", package]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()


def main():
    version, architecture, libraries, program = sys.argv[1:]
    with open("docs/NOTICES.md") as file:
        notices = file.read()
    licences = {
        name.lower(): licence(cell) for name, cell in re.findall(r"^\| \[([^\]]+)\]\([^)]*\)[^|]*\| [^|]* \| ([^|]*) \|", notices, re.M)}
    with open(program, "rb") as file:
        digest = hashlib.sha256(file.read()).hexdigest()
    packages = [{
        "name": "gifreel", "SPDXID": "SPDXRef-gifreel", "versionInfo": version, "downloadLocation": "NOASSERTION", "filesAnalyzed": False,
        "licenseConcluded": "GPL-3.0-or-later", "licenseDeclared": "MIT", "copyrightText": "NOASSERTION", "primaryPackagePurpose": "APPLICATION",
        "checksums": [{"algorithm": "SHA256", "checksumValue": digest}]}]
    relations = [("SPDXRef-DOCUMENT", "DESCRIBES", "SPDXRef-gifreel")]

    def add(kind, name, number, location, terms, link, relation):
        reference = re.sub(r"[^A-Za-z0-9.-]", "-", f"SPDXRef-{kind}-{name}")
        packages.append({
            "name": name, "SPDXID": reference, "versionInfo": number, "downloadLocation": location, "filesAnalyzed": False,
            "licenseConcluded": "NOASSERTION", "licenseDeclared": terms, "copyrightText": "NOASSERTION",
            "externalRefs": [{"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl", "referenceLocator": link}]})
        relations.append(("SPDXRef-gifreel", relation, reference))

    with open("Package.resolved") as file:
        pins = json.load(file)["pins"]
    for pin in sorted(pins, key=lambda pin: pin["identity"]):
        location, state = pin["location"].removesuffix(".git"), pin["state"]
        name = location.rsplit("/", 1)[1]
        terms = licences.get(name.lower(), "NOASSERTION")
        path = location.removeprefix("https://")
        add("swift", name, state["version"], f"git+{location}@{state['revision']}", terms, f"pkg:swift/{path}@{state['version']}", "STATIC_LINK")
    compiler = subprocess.run(["swift", "--version"], check=True, capture_output=True, text=True).stdout
    swift = re.search(r"Swift version (\S+)", compiler)[1]
    add("toolchain", "swift", swift, "https://www.swift.org/install", "Apache-2.0 WITH Swift-exception", f"pkg:generic/swift@{swift}", "STATIC_LINK")
    for package, terms in STATIC.items():
        source, number = installed(package)
        add("debian", source, number, "https://snapshot.debian.org", terms, f"pkg:deb/debian/{source}@{number}?arch=source", "STATIC_LINK")
    for package in sorted({re.split(r"[ (|]", each.strip())[0] for each in libraries.split(",")}):
        _, number = installed(package)
        add("debian", package, number, "https://snapshot.debian.org", "NOASSERTION",
            f"pkg:deb/debian/{package}@{number}?arch={architecture}", "DYNAMIC_LINK")

    created = datetime.datetime.fromtimestamp(int(os.environ["SOURCE_DATE_EPOCH"]), datetime.timezone.utc)
    print(json.dumps({
        "spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0", "SPDXID": "SPDXRef-DOCUMENT", "name": f"gifreel-{version}-{architecture}",
        "documentNamespace": f"https://spdx.org/spdxdocs/gifreel-{version}-{uuid.uuid5(uuid.NAMESPACE_URL, digest)}",
        "creationInfo": {"created": created.strftime("%Y-%m-%dT%H:%M:%SZ"), "creators": ["Tool: gifreel-scripts-package"]},
        "packages": packages,
        "relationships": [
            {"spdxElementId": one, "relationshipType": kind, "relatedSpdxElement": other} for one, kind, other in relations],
    }, indent=1))


if __name__ == "__main__":
    main()
