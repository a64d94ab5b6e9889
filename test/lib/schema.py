# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Whether a value fits a schema of tools/schema/: the keywords that these use, and no others."""

import json
import re

from harness import ROOT

TYPES = {"object": dict, "array": list, "string": str, "boolean": bool, "null": type(None), "integer": int, "number": (int, float)}
SILENT = {"$schema", "$defs", "title", "description"}


def is_type(name, value):
    return isinstance(value, TYPES[name]) and not (name in ("integer", "number") and isinstance(value, bool))


def check(schema, value, root, where):
    for keyword, said in schema.items():
        if keyword in SILENT or keyword == "properties":
            continue
        if keyword == "$ref":
            check(root["$defs"][said.rsplit("/", 1)[1]], value, root, where)
        elif keyword == "anyOf":
            assert any(fits(one, value, root) for one in said), f"{where}: {value!r} is none of {said}"
        elif keyword == "type":
            names = said if isinstance(said, list) else [said]
            assert any(is_type(name, value) for name in names), f"{where}: {value!r} is not {said}"
        elif keyword == "const":
            assert value == said, f"{where}: {value!r} is not {said!r}"
        elif keyword == "minimum":
            assert value is None or value >= said, f"{where}: {value!r} is below {said}"
        elif keyword == "maximum":
            assert value is None or value <= said, f"{where}: {value!r} is above {said}"
        elif keyword == "required":
            assert not isinstance(value, dict) or not set(said) - set(value), f"{where}: without {set(said) - set(value)}"
        elif keyword == "pattern":
            assert re.search(said, value), f"{where}: {value!r} is not {said}"
        elif keyword == "enum":
            assert value in said, f"{where}: {value!r} is none of {said}"
        elif keyword == "items":
            for i, item in enumerate(value or ()):
                check(said, item, root, f"{where}[{i}]")
        elif keyword == "additionalProperties":
            assert said or not isinstance(value, dict) or not set(value) - set(schema["properties"]), f"{where}: {set(value) - set(schema['properties'])}"
        else:
            raise AssertionError(f"{where}: the schema has a keyword that is not known here: {keyword}")
    for name, inner in schema.get("properties", {}).items():
        if isinstance(value, dict) and name in value:
            check(inner, value[name], root, f"{where}.{name}")


def fits(schema, value, root):
    try:
        check(schema, value, root, "")
    except AssertionError:
        return False
    return True


def expect_fits(name, value):
    """Does the value fit tools/schema/NAME.json?"""
    schema = json.loads((ROOT / "tools/schema" / f"{name}.json").read_text())
    check(schema, value, schema, name)
