"""Puts the command `tambour` into a wheel of the package, as a script that installers place on the path.

`maturin build` takes such files from a folder only if it is there in every build, so they are added afterwards.

python add_command.py WHEEL PROGRAM
"""

from __future__ import annotations

import base64
import hashlib
import os
import pathlib
import sys
import zipfile

#: Mode of a program: readable by all, and executable.
PROGRAM_MODE = 0o100755


def add_command(wheel: pathlib.Path, program: pathlib.Path) -> None:
    """Adds the program to the wheel, or replaces it."""
    content = program.read_bytes()
    with zipfile.ZipFile(wheel) as archive:
        entries = [(entry, archive.read(entry)) for entry in archive.infolist()]
    record_name = next(entry.filename for entry, _ in entries if entry.filename.endswith(".dist-info/RECORD"))
    name = f"{record_name.removesuffix('.dist-info/RECORD')}.data/scripts/{program.name}"
    digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
    line = f"{name},sha256={digest},{len(content)}\n"
    script = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
    script.external_attr = PROGRAM_MODE << 16
    script.compress_type = zipfile.ZIP_DEFLATED
    temporary = wheel.with_suffix(".part")
    with zipfile.ZipFile(temporary, "w", zipfile.ZIP_DEFLATED) as archive:
        for entry, data in entries:
            if entry.filename == name:
                continue
            if entry.filename == record_name:
                lines = data.decode().splitlines(keepends=True)
                data = "".join([line, *(other for other in lines if not other.startswith(f"{name},"))]).encode()
            archive.writestr(entry, data)
        archive.writestr(script, content)
    os.replace(temporary, wheel)


if __name__ == "__main__":
    add_command(pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]))
