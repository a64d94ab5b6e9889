# SPDX-License-Identifier: Apache-2.0 OR MIT
"""The application of torsh.asgi:app and torsh.wsgi:app."""

import importlib
import os


def load():
    """Returns the application that TORSH_APP names, as MODULE:NAME."""
    module, _, names = os.environ.get("TORSH_APP", "").partition(":")
    if not module or not names:
        raise RuntimeError("TORSH_APP has to name the application: MODULE:NAME")
    found = importlib.import_module(module)
    for name in names.split("."):
        found = getattr(found, name)
    return found
