# SPDX-License-Identifier: Apache-2.0 OR MIT
"""
Whether a value fits a schema of tools/schema/: the keywords that these use, and no others.

A schema is compiled once into nested functions. Each takes a value and returns None, or why the value doesn't fit, as
(path of the place inside the value, sentence): paths are only put together for what fails.
"""

import functools
import json
import re

from harness import ROOT

# What json.loads makes of each.
TYPES = {"object": {dict}, "array": {list}, "string": {str}, "boolean": {bool}, "null": {type(None)}, "integer": {int},
         "number": {int, float}}
SILENT = {"$schema", "$defs", "title", "description"}


def holds(is_met, sentence):
    """A check of the value alone."""
    return lambda value: None if is_met(value) else ("", f"{value!r} {sentence}")


def check_type(schema, wanted, schemas):
    types = frozenset().union(*(TYPES[name] for name in (wanted if isinstance(wanted, list) else [wanted])))
    return holds(lambda value: type(value) in types, f"is not {wanted}")


def check_any(schema, wanted, schemas):
    choices = [compile_schema(one, schemas) for one in wanted]
    return holds(lambda value: any(choice(value) is None for choice in choices), f"is none of {wanted}")


def check_reference(schema, wanted, schemas):
    """"#/$defs/NAME" or "FILE#/$defs/NAME". Looked up when it is used: a definition may refer to itself."""
    file, name = wanted.split("#/$defs/")
    return lambda value: compiled_definition(name, read_schemas(schemas["path"].parent / file) if file else schemas)(value)


def check_required(schema, wanted, schemas):
    names = frozenset(wanted)
    return lambda value: ("", f"without {names - value.keys()}") if isinstance(value, dict) and names - value.keys() else None


def check_items(schema, wanted, schemas):
    check = compile_schema(wanted, schemas)

    def check_each(value):
        for i, item in enumerate(value or ()):
            failure = check(item)
            if failure:
                return f"[{i}]{failure[0]}", failure[1]
        return None
    return check_each


def check_properties(schema, wanted, schemas):
    checks = {name: compile_schema(inner, schemas) for name, inner in wanted.items()}

    def check_each(value):
        if not isinstance(value, dict):
            return None
        for name, check in checks.items():
            failure = check(value[name]) if name in value else None
            if failure:
                return f".{name}{failure[0]}", failure[1]
        return None
    return check_each


def check_additional(schema, wanted, schemas):
    """false: there may be no others; otherwise the schema of the others."""
    known = frozenset(schema.get("properties", ()))
    check = compile_schema(wanted, schemas) if wanted else None

    def check_others(value):
        others = value.keys() - known if isinstance(value, dict) else ()
        if others and not check:
            return "", f"{others}"
        for name in others:
            failure = check(value[name])
            if failure:
                return f".{name}{failure[0]}", failure[1]
        return None
    return check_others


KEYWORDS = {
    "$ref": check_reference,
    "anyOf": check_any,
    "type": check_type,
    "const": lambda schema, wanted, schemas: holds(lambda value: value == wanted, f"is not {wanted!r}"),
    "minimum": lambda schema, wanted, schemas: holds(lambda value: value is None or value >= wanted, f"is below {wanted}"),
    "maximum": lambda schema, wanted, schemas: holds(lambda value: value is None or value <= wanted, f"is above {wanted}"),
    "minItems": lambda schema, wanted, schemas: holds(lambda value: value is None or len(value) >= wanted, f"has fewer than {wanted} items"),
    "maxItems": lambda schema, wanted, schemas: holds(lambda value: value is None or len(value) <= wanted, f"has more than {wanted} items"),
    "pattern": lambda schema, wanted, schemas: holds(lambda value: re.search(wanted, value), f"is not {wanted}"),
    "enum": lambda schema, wanted, schemas: holds(lambda value: value in wanted, f"is none of {wanted}"),
    "required": check_required,
    "items": check_items,
    "properties": check_properties,
    "additionalProperties": check_additional,
}


def compile_schema(schema, schemas):
    """schemas: those of the file, as read_schemas returns them"""
    unknown = schema.keys() - KEYWORDS.keys() - SILENT
    assert not unknown, f"the schema has keywords that are not known here: {unknown}"
    checks = [KEYWORDS[keyword](schema, wanted, schemas) for keyword, wanted in schema.items() if keyword not in SILENT]
    if len(checks) == 1:
        return checks[0]

    def check_all(value):
        for check in checks:
            failure = check(value)
            if failure:
                return failure
        return None
    return check_all


def compiled_definition(name, schemas):
    if name not in schemas["compiled"]:
        schemas["compiled"][name] = compile_schema(schemas["definitions"][name], schemas)
    return schemas["compiled"][name]


@functools.lru_cache(None)
def read_schemas(path):
    """A file: its schema, its definitions, and those of them that were needed so far, compiled."""
    schema = json.loads(path.read_text())
    return {"path": path, "whole": schema, "definitions": schema.get("$defs", {}), "compiled": {}}


@functools.lru_cache(None)
def read_schema(path):
    schemas = read_schemas(path)
    return compile_schema(schemas["whole"], schemas)


def expect_fits_file(path, value):
    """Does the value fit the schema in that file?"""
    failure = read_schema(path)(value)
    assert not failure, f"{path.stem}{failure[0]}: {failure[1]}"


def expect_fits(name, value):
    """Does the value fit NAME.json, in or below tools/schema/?"""
    expect_fits_file(next((ROOT / "tools/schema").rglob(f"{name}.json")), value)
