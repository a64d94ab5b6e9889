# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Reads and exports recordings with the torsh command."""


class RecordingError(Exception):
    """A recording could not be read; the text is the torsh command's."""


class Recording:
    """
    A recording, or its folder, read with the torsh command: $TORSH, else the one that this module was built or
    installed with, else the one in PATH.
    """

    def __init__(self, path: object, command: "str | None" = None) -> None:
        self.path, self._command = str(path), command or find_command()

    def read(self, report: str, *arguments: object, **options: object) -> dict:
        """Returns the output of `torsh REPORT PATH --json`, as dictionaries and lists. min_bytes="1M" means
        --min-bytes=1M."""
        import json

        words = ["--" + name.replace("_", "-") + ("" if value is True else f"={value}") for name, value in options.items()]
        # 1: a budget was exceeded, which the report contains.
        return json.loads(run_command(report, self.path, "--json", *arguments, *words, command=self._command, may_be=(0, 1)))

    def export(self, format: str, path: object) -> str:
        """Write an export in one of torsh export's formats. Returns its path."""
        run_command("export", self.path, "--format", format, "-o", path, command=self._command)
        return str(path)

    def events(self) -> "object":
        """Iterate over the lines of `torsh dump`, as dictionaries, with one line in memory at a time."""
        import json
        import subprocess

        with subprocess.Popen([self._command, "dump", self.path], stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE) as process:
            for line in process.stdout or ():
                yield json.loads(line)
        if process.returncode:
            raise RecordingError(f"torsh dump {self.path}: status {process.returncode}")


def run_command(*arguments, command=None, may_be=(0,)):
    """Returns the output of a torsh command, which is not recorded."""
    import os
    import subprocess

    done = subprocess.run([command or find_command(), *map(str, arguments)], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, env=dict(os.environ, TORSH_PROFILER_ENABLED="0"))
    if done.returncode not in may_be:
        raise RecordingError(done.stderr.decode(errors="replace").strip())
    return done.stdout


def find_command():
    """Returns the torsh command: $TORSH, else the one this module was built or installed with, else the one in PATH."""
    import os

    here = os.path.dirname(os.path.abspath(__file__))
    # From PREFIX/lib/torsh/python/torsh, PREFIX/lib/python3.N/site-packages/torsh, or tools/python/torsh in the source.
    places = (os.environ.get("TORSH"), os.path.join(here, "../../../../bin/torsh"), os.path.join(here, "../../../build/torsh"))
    return next((place for place in places if place and os.access(place, os.X_OK)), "torsh")
