# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Libraries to open and close again and again, for the tests of the loader."""

import shutil

from harness import PROGRAMS, scratch

N_LIBRARIES = 10


def libraries():
    """Ten files, of two kinds with functions at the same places and frames of different sizes."""
    folder = scratch("libraries")
    for i in range(N_LIBRARIES):
        shutil.copy(PROGRAMS / f"libtwin_{'small' if i % 2 else 'large'}.so", folder / f"lib{i}.so")
    return sorted(folder.iterdir())
