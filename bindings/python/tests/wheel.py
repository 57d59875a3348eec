"""Packs a wheel from a native library that Cargo has built already, for the tests.

`maturin build` makes the same wheel for users; it would compile everything again with the features of this package
alone.

python wheel.py LIBRARY FOLDER
"""

from __future__ import annotations

import base64
import hashlib
import pathlib
import re
import sys
import sysconfig
import zipfile

ROOT = pathlib.Path(__file__).resolve().parent.parent


def make_wheel(library: pathlib.Path, folder: pathlib.Path) -> pathlib.Path:
    """Writes the wheel into the folder; returns its path."""
    workspace = (ROOT / "../../Cargo.toml").read_text()
    version = re.search(r'^version = "([^"]+)"', workspace, re.MULTILINE).group(1)
    platform = re.sub(r"[-.]", "_", sysconfig.get_platform())
    tag = f"cp310-abi3-{platform}"
    info = f"tambour-{version}.dist-info"
    package = ROOT / "python/tambour"
    sources = [path for path in sorted(package.iterdir()) if path.suffix in (".py", ".pyi") or path.name == "py.typed"]
    files = {f"tambour/{path.name}": path.read_bytes() for path in sources}
    files["tambour/_native.abi3.so"] = library.read_bytes()
    files[f"{info}/METADATA"] = f"Metadata-Version: 2.1\nName: tambour\nVersion: {version}\n".encode()
    files[f"{info}/WHEEL"] = f"Wheel-Version: 1.0\nRoot-Is-Purelib: false\nTag: {tag}\n".encode()
    record = ""
    for name, content in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
        record += f"{name},sha256={digest},{len(content)}\n"
    files[f"{info}/RECORD"] = f"{record}{info}/RECORD,,\n".encode()
    folder.mkdir(parents=True, exist_ok=True)
    wheel = folder / f"tambour-{version}-{tag}.whl"
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for name, content in files.items():
            # One time, so that the same library gives the same wheel.
            entry = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
            entry.external_attr = 0o100644 << 16
            archive.writestr(entry, content, zipfile.ZIP_DEFLATED, 1)
    return wheel


if __name__ == "__main__":
    print(make_wheel(pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])))
