"""Third-party notices: the packages that are linked into a product, with their licence texts.

    python -m tools.notices target/wheel/THIRD-PARTY.md

Packages are those of the lock file, as `cargo tree` lists them for each product. Licence texts are
read from the source folders of the packages, and identical texts are written once. The file is
larger than 200 kB and follows from the lock file, so it is made for a release and not committed.
"""

import json
import re
import subprocess
import sys
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]

PRODUCTS = {
    "rampmeter-py": "Python module",
    "rampd": "`rampd`",
    "rampmeter-preload": "`librampmeter_capton.so`",
}
"""Crates whose dependencies are linked into a product, and the names of these products."""

NAMES = re.compile(r"(licen[cs]e|copying|copyright|notice|unlicense)([-._].*)?", re.IGNORECASE)
"""Names of files with the terms of a licence."""

HEAD = """\
# Third-party notices

Made by `python -m tools.notices` from `Cargo.lock`. Rampmeter is under the Apache License 2.0. Its
products contain the packages below, each under its own licence. If a licence expression has
`OR`, Rampmeter uses the package under the terms that `deny.toml` allows; texts of the alternatives
are included as the package has them.

All products also contain the Rust standard library (MIT OR Apache-2.0,
https://github.com/rust-lang/rust).
"""


@dataclass
class Package:
    """A linked package of another project."""

    name: str
    version: str
    licence: str
    repository: str
    folder: Path
    products: list[str] = field(default_factory=list)

    def texts(self) -> list[tuple[str, str]]:
        """Returns names and texts of the licence files, also those of bundled sources in C."""
        found = sorted({*self.folder.glob("*"), *self.folder.glob("*/*")})
        files = [file for file in found if NAMES.fullmatch(file.name) and file.is_file()]
        return [
            (str(file.relative_to(self.folder)), normal(file.read_text("utf-8", "replace")))
            for file in files
            if file.suffix not in (".rs", ".toml", ".json", ".c", ".h", ".py")
        ]


def normal(text: str) -> str:
    """Returns a text without spaces at ends of lines, so that copies of one text are equal."""
    return "\n".join(line.rstrip() for line in text.strip().splitlines())


def cargo(*arguments: str, manifest: Path = ROOT / "Cargo.toml") -> str:
    """Returns the output of a cargo command that uses neither network nor compiler."""
    command = ["cargo", *arguments, "--offline", "--locked", "--manifest-path", str(manifest)]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def host() -> str:
    """Returns the target triple of this machine."""
    version = subprocess.run(["rustc", "-vV"], check=True, capture_output=True, text=True).stdout
    return version.partition("host: ")[2].split()[0]


def metadata(manifest: Path) -> list[dict[str, Any]]:
    """Returns the packages of a lock file that are used on this machine."""
    text = cargo("metadata", "--format-version=1", f"--filter-platform={host()}", manifest=manifest)
    packages: list[dict[str, Any]] = json.loads(text)["packages"]
    return packages


def linked(crate: str) -> set[tuple[str, str]]:
    """Returns names and versions of packages that are linked into a crate's product."""
    edges = ("--edges=normal,no-proc-macro", "--prefix=none", "--format={p}")
    lines = cargo("tree", f"--package={crate}", *edges).splitlines()
    words = (line.split() for line in lines if line)
    return {(name, version.removeprefix("v")) for name, version, *_ in words}


def packages_of_products() -> list[Package]:
    """Returns the packages of other projects in all products, by name and version."""
    about = {(one["name"], one["version"]): one for one in metadata(ROOT / "Cargo.toml")}
    found: dict[tuple[str, str], Package] = {}
    for crate, product in PRODUCTS.items():
        for key in linked(crate):
            one = about[key]
            if one["source"] is None:
                continue
            if key not in found:
                folder = Path(one["manifest_path"]).parent
                licence = one["license"] or f"file {one['license_file']}"
                found[key] = Package(*key, licence, one["repository"] or "", folder)
            found[key].products.append(product)
    return [found[key] for key in sorted(found)]


def notices(packages: list[Package]) -> str:
    """Returns the document: a table of packages, then each licence text with its packages."""
    lines = [HEAD, "## Packages", ""]
    lines += [
        "| package | version | licence | repository | contained in |",
        "|---|---|---|---|---|",
    ]
    users: dict[str, list[str]] = defaultdict(list)
    without: list[str] = []
    of_repository = {one.repository: texts for one in packages if (texts := one.texts())}
    for one in packages:
        cells = (one.name, one.version, one.licence, one.repository, ", ".join(one.products))
        lines.append(f"| {' | '.join(cells)} |")
        texts = one.texts() or of_repository.get(one.repository, [])
        for file, text in texts:
            users[text].append(f"{one.name} {one.version} (`{file}`)")
        if not texts:
            without.append(f"{one.name} {one.version} ({one.licence})")
    if without:
        lines += ["", f"Without a licence text in their sources: {', '.join(without)}."]
    lines += ["", "## Licence texts"]
    ordered = sorted(users.items(), key=lambda item: (-len(item[1]), item[1]))
    for number, (text, names) in enumerate(ordered, 1):
        fence = "````" if "```" in text else "```"
        lines += ["", f"### Text {number}", "", ", ".join(names), "", f"{fence}text", text, fence]
    return "\n".join(lines) + "\n"


def main() -> None:
    """Writes the document to the file of the command line."""
    [file] = sys.argv[1:]
    Path(file).write_text(notices(packages_of_products()), encoding="utf-8")


if __name__ == "__main__":
    main()
