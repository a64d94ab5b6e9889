# SPDX-License-Identifier: Apache-2.0 OR MIT
"""
A strict check of processed profiles of the Firefox Profiler, version 60: its types, re-stated from
https://github.com/firefox-devtools/profiler (src/types/profile.ts and markers.ts at that version, docs-developer/CHANGELOG-formats.md).
A column has the length of its table, an index points into the table that it is of, and there is nothing that the types don't have.
"""

NUMBER, TEXT, BOOL = (int, float), (str,), (bool,)
COLORS = {"transparent", "purple", "green", "orange", "yellow", "lightblue", "blue", "brown", "magenta", "red", "lightred", "darkgrey", "grey"}
META = {"interval": NUMBER, "startTime": NUMBER, "processType": (int,), "product": TEXT, "stackwalk": (int,), "version": (int,),
        "preprocessedProfileVersion": (int,), "markerSchema": (list,), "categories": (list,)}
META_OPTIONAL = {"importedFrom": TEXT, "device": TEXT, "symbolicated": BOOL, "usesOnlyOneStackType": BOOL, "sourceCodeIsNotOnSearchfox": BOOL,
                 "keepProfileThreadOrder": BOOL, "sampleUnits": (dict,)}
THREAD = {"processType": TEXT, "processStartupTime": NUMBER, "processShutdownTime": (*NUMBER, type(None)), "registerTime": NUMBER,
          "unregisterTime": (*NUMBER, type(None)), "pausedRanges": (list,), "name": TEXT, "isMainThread": BOOL, "pid": TEXT,
          "tid": (int, str), "samples": (dict,), "markers": (dict,)}
THREAD_OPTIONAL = {"processName": TEXT, "showMarkersInTimeline": BOOL}
LIBRARY = {"arch": TEXT, "name": TEXT, "path": TEXT, "debugName": TEXT, "debugPath": TEXT, "breakpadId": TEXT, "codeId": (str, type(None))}
PLACES = {"marker-chart", "marker-table", "timeline-overview", "timeline-memory", "timeline-ipc", "timeline-fileio", "stack-chart"}


def check_members(name, value, wanted, optional=None):
    optional = optional or {}
    assert set(wanted) <= value.keys() <= set(wanted) | set(optional), f"{name}: {sorted(value.keys() ^ set(wanted))}"
    for key, item in value.items():
        types = (wanted | optional)[key]
        assert isinstance(item, types) and (bool in types or not isinstance(item, bool)), f"{name}.{key}: {item!r} is no {types}"


def check_table(name, table, columns):
    """columns: for each the check of an item."""
    assert table.keys() == columns.keys() | {"length"}, f"{name}: {sorted(table.keys() ^ columns.keys())}"
    for column, is_good in columns.items():
        assert len(table[column]) == table["length"], f"{name}.{column} has {len(table[column])} items of {table['length']}"
        for item in table[column]:
            assert is_good(item), f"{name}.{column}: {item!r}"


def integer(item):
    return type(item) is int


def null(item):
    return item is None


def index(n, least=0):
    return lambda item: type(item) is int and least <= item < n


def maybe(check):
    return lambda item: item is None or check(item)


def number(item):
    return type(item) in NUMBER


def check_shared(shared, categories, libs):
    texts, frames, functions, stacks = (shared[name] if name == "stringArray" else shared[name]["length"]
                                        for name in ("stringArray", "frameTable", "funcTable", "stackTable"))
    check_members("shared", shared, {"stringArray": (list,), **dict.fromkeys(
        ("stackTable", "frameTable", "funcTable", "resourceTable", "nativeSymbols", "sources"), (dict,))})
    assert len(set(texts)) == len(texts) and all(type(text) is str for text in texts), "a text is there twice"
    text = index(len(texts))
    check_table("stackTable", shared["stackTable"], {"frame": index(frames), "prefix": maybe(index(stacks))})
    assert all(prefix is None or prefix < i for i, prefix in enumerate(shared["stackTable"]["prefix"])), "a stack before its prefix"
    check_table("frameTable", shared["frameTable"], {
        "address": lambda item: integer(item) and item >= -1, "inlineDepth": index(1 << 8), "category": index(categories), "subcategory": index(1),
        "func": index(functions), "nativeSymbol": null, "innerWindowID": null, "line": maybe(index(1 << 31, 1)), "column": null})
    check_table("funcTable", shared["funcTable"], {
        "name": text, "isJS": lambda item: item is False, "relevantForJS": lambda item: item is False,
        "resource": index(shared["resourceTable"]["length"], -1), "source": maybe(index(shared["sources"]["length"])), "lineNumber": null,
        "columnNumber": null})
    check_table("resourceTable", shared["resourceTable"], {"lib": maybe(index(libs)), "name": text, "host": null, "type": lambda item: item == 1})
    check_table("nativeSymbols", shared["nativeSymbols"], dict.fromkeys(("libIndex", "address", "name", "functionSize"), lambda item: False))
    check_table("sources", shared["sources"], {"uuid": null, "filename": text})


def check_markers(markers, schemas, shared, categories):
    texts, stacks = index(len(shared["stringArray"])), index(shared["stackTable"]["length"])
    check_table("markers", markers, {"data": lambda item: item["type"] in schemas, "name": texts, "startTime": number, "endTime": maybe(number),
                                     "phase": index(4), "category": index(categories)})
    for data, phase, start, end in zip(*(markers[name] for name in ("data", "phase", "startTime", "endTime"))):
        assert (end is None) if phase == 0 else (phase == 1 and end >= start), f"a marker of phase {phase} from {start} to {end}"
        for key, item in data.items():
            if key == "cause":
                check_members("cause", item, {"tid": (int,), "time": NUMBER, "stack": (int,)})
                assert stacks(item["stack"]), item
            elif key != "type":
                assert key in schemas[data["type"]] and texts(item), f"{data['type']}.{key}: {item!r}"


def check_meta(meta):
    check_members("meta", meta, META, META_OPTIONAL)
    assert meta["preprocessedProfileVersion"] == 60 and meta["stackwalk"] in (0, 1) and meta["interval"] > 0, meta
    assert meta["sampleUnits"] == {"time": "ms", "eventDelay": "ms", "threadCPUDelta": "ns"}, meta["sampleUnits"]
    for category in meta["categories"]:
        check_members("category", category, {"name": TEXT, "color": TEXT, "subcategories": (list,)})
        assert category["color"] in COLORS and category["subcategories"][0] == "Other", category
    # The viewer's default is the one that is grey.
    assert [one["name"] for one in meta["categories"] if one["color"] == "grey"] == ["Other"]
    schemas = {}
    for schema in meta["markerSchema"]:
        check_members("schema", schema, {"name": TEXT, "display": (list,), "fields": (list,)},
                      dict.fromkeys(("tooltipLabel", "tableLabel", "chartLabel"), TEXT))
        assert set(schema["display"]) <= PLACES and schema["name"] not in schemas, schema
        for field in schema["fields"]:
            check_members("field", field, {"key": TEXT, "format": TEXT}, {"label": TEXT})
            assert field["format"] == "unique-string", field
        schemas[schema["name"]] = {field["key"] for field in schema["fields"]}
    return schemas


def check_profile(profile):
    check_members("profile", profile, {"meta": (dict,), "libs": (list,), "threads": (list,), "shared": (dict,)})
    schemas, shared, n = check_meta(profile["meta"]), profile["shared"], len(profile["meta"]["categories"])
    for library in profile["libs"]:
        check_members("lib", library, LIBRARY)
    check_shared(shared, n, len(profile["libs"]))
    for thread in profile["threads"]:
        check_members("thread", thread, THREAD, THREAD_OPTIONAL)
        samples = dict(thread["samples"])
        assert samples.pop("weightType") == "tracing-ms"
        check_table("samples", samples, {"stack": maybe(index(shared["stackTable"]["length"])), "time": number, "weight": number, "threadCPUDelta": integer})
        assert samples["time"] == sorted(samples["time"]), "samples are not in the order of their times"
        check_markers(thread["markers"], schemas, shared, n)


def stack_of(profile, stack):
    """[(function, file or None, line or None, category)] of a stack, innermost first."""
    shared, found = profile["shared"], []
    while stack is not None:
        frame = shared["stackTable"]["frame"][stack]
        function = shared["frameTable"]["func"][frame]
        source = shared["funcTable"]["source"][function]
        found.append((shared["stringArray"][shared["funcTable"]["name"][function]],
                      None if source is None else shared["stringArray"][shared["sources"]["filename"][source]],
                      shared["frameTable"]["line"][frame], profile["meta"]["categories"][shared["frameTable"]["category"][frame]]["name"]))
        stack = shared["stackTable"]["prefix"][stack]
    return found
