# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Recordings below one folder: what leads out of it is refused."""

import os

ENDING = ".torsh"


class Refused(Exception):
    """What was asked for is not given; the text says why."""


class Folder:
    def __init__(self, path):
        self.root = os.path.realpath(path)
        if not os.path.isdir(self.root):
            raise Refused(f"{path} is no folder")

    def recording(self, name):
        """The path of a recording, by its name below the folder: a file, or a folder whose newest one is meant."""
        path = self._inside(name)
        if not os.path.isdir(path):
            if not path.endswith(ENDING):
                raise Refused(f"{name!r} is no recording (NAME{ENDING})")
            return path
        # The command picks one of them: none may lead out.
        names = [entry for entry in os.listdir(path) if entry.endswith(ENDING)]
        for entry in names:
            self._inside(os.path.join(name, entry))
        if not names:
            raise Refused(f"{name!r} has no recording; there are {', '.join(self.recordings()) or 'none'} in this folder")
        return path

    def recordings(self, most=50):
        """Names of folders with recordings."""
        found = []
        for folder, folders, files in os.walk(self.root):
            folders.sort()
            if any(file.endswith(ENDING) for file in files):
                found.append(os.path.relpath(folder, self.root))
            if len(found) == most:
                break
        return found

    def _inside(self, name):
        if "\0" in name or os.path.isabs(name) or ".." in name.split(os.sep):
            raise Refused(f"{name!r} is refused: give a path below the folder, without '..'")
        path = os.path.realpath(os.path.join(self.root, name))
        if os.path.commonpath([path, self.root]) != self.root:
            raise Refused(f"{name!r} is refused: it leads out of the folder")
        if not os.path.exists(path):
            raise Refused(f"{name!r} is not there; there are {', '.join(self.recordings()) or 'none'} in this folder")
        return path
