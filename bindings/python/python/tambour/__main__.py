"""`python -m tambour`: runs the command `tambour` that the package carries."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig


def find_command() -> str:
    """Path of the command: among the scripts of this environment, of the user, or beside the package."""
    name = "tambour.exe" if os.name == "nt" else "tambour"
    package = os.path.dirname(os.path.abspath(__file__))
    user_scheme = sysconfig.get_preferred_scheme("user")
    folders = [
        sysconfig.get_path("scripts"),
        os.path.dirname(sys.executable),
        sysconfig.get_path("scripts", scheme=user_scheme),
    ]
    # `pip install --target FOLDER` puts scripts beside the packages.
    folders.append(os.path.join(os.path.dirname(package), "bin"))
    for folder in folders:
        path = os.path.join(folder, name)
        if os.path.isfile(path):
            return path
    raise FileNotFoundError(f"this package carries no command `{name}`; looked in {', '.join(folders)}")


def main() -> int:
    """Runs the command in place of this process; on Windows beside it."""
    try:
        command = find_command()
    except FileNotFoundError as error:
        print(error, file=sys.stderr)
        return 2
    arguments = [command, *sys.argv[1:]]
    if os.name == "nt":
        return subprocess.run(arguments).returncode
    sys.stdout.flush()
    os.execv(command, arguments)


if __name__ == "__main__":
    sys.exit(main())
