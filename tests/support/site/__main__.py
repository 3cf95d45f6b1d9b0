"""Builds the site of the documentation.

Run `python -m tests.support.site [FOLDER]`; the folder is `build/docs` by default.

The sources are copied beside generated pages, in the repository's layout, so that links between files lead to the same places on both.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Final

from tests.support.site.checks import faults
from tests.support.site.course import write_course
from tests.support.site.gallery import write_gallery
from tests.support.site.reference import write_reference

ROOT: Final = Path(__file__).parents[3]
DOCS: Final = Path("notebooks") / "docs"
PAGES: Final = ("CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md")
"""The pages of the repository that are part of the site."""
LINKED: Final = ("CITATION.cff", "LICENSE")
START: Final = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>Graphloupe</title>
<meta http-equiv="refresh" content="0; url={page}"></head><body><a href="{page}">Graphloupe</a></body></html>
"""


def prepare(source: Path, extra: Path) -> None:
    """Write the sources of the site to `source`, and the files that are copied as they are to `extra`."""
    for name in (*PAGES, *LINKED):
        shutil.copyfile(ROOT / name, source / name)
    shutil.copytree(ROOT / "notebooks", source / "notebooks", ignore=shutil.ignore_patterns("README.md", "*.py", ".ipynb_checkpoints"))
    write_course(source / "notebooks", extra / "notebooks")
    write_gallery(source / DOCS / "gallery.md", extra / DOCS / "gallery")
    write_reference(source / DOCS)


def build(target: Path) -> list[str]:
    """Build the site in `target`. Returns the faults of its pages; CalledProcessError at a warning of Sphinx."""
    work = target.with_name(f"{target.name}-source")
    for folder in (target, work):
        shutil.rmtree(folder, ignore_errors=True)
    source, extra = work / "pages", work / "files"
    source.mkdir(parents=True)
    extra.mkdir()
    prepare(source, extra)
    command = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", "-j", "2", "-b", "html", "-d", work / "trees"]
    subprocess.run([*map(str, command), "-c", str(ROOT / DOCS), str(source), str(target)], check=True)
    shutil.copytree(extra, target, dirs_exist_ok=True)
    (target / "index.html").write_text(START.format(page=(DOCS / "index.html").as_posix()), encoding="utf-8")
    return faults(target)


def main() -> int:
    """Build, report. Returns the exit status."""
    started = time.monotonic()
    target = Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "build" / "docs").resolve()
    found_faults = build(target)
    for fault in found_faults:
        print(fault)
    size = sum(path.stat().st_size for path in target.rglob("*") if path.is_file())
    print(f"{target / 'index.html'}: {len(found_faults)} faults, {size / 1e6:.0f} MB, {time.monotonic() - started:.0f} s")
    return 1 if found_faults else 0


if __name__ == "__main__":
    sys.exit(main())
