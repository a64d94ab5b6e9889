#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""
Programs that import and use popular packages of PyPI: what an import or a first use keeps is no leak. Packages that keep a cache for what
was used (numpy of small arrays, libxml2 of names, Rust's of a thread) are used again and again: nothing is kept for each.
"""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
from harness import *  # noqa: E402,F403
from environments import environment_python  # noqa: E402

TIMEOUT_S, USES, CACHE_BYTES = 240, 50, 32 << 10

# What is imported, and what is done with it.
CLEAN = {
    "aiohttp": ("aiohttp", "aiohttp.FormData({'a': 'b'})()"),
    "attrs": ("attrs", "attrs.asdict(attrs.make_class('C', ['a', 'b'])(1, 2))"),
    "certifi": ("certifi", "certifi.contents()"),
    "click": ("click", "click.Command('a', params=[click.Option(['--n'])]).main(['--n', '3'], standalone_mode=False)"),
    "cryptography": ("cryptography.fernet as f", "k = f.Fernet(f.Fernet.generate_key()); k.decrypt(k.encrypt(b'a'))"),
    "dateutil": ("dateutil.parser as p", "p.parse('2020-01-02T03:04Z')"),
    "django": ("django.utils.html as h", "h.format_html('<b>{}</b>', 'a')"),
    "fastapi": ("fastapi", "a = fastapi.FastAPI(); a.get('/{n}')(lambda n: n); a.openapi()"),
    "flask": ("flask", "a = flask.Flask('a'); a.add_url_rule('/', 'i', lambda: 'text'); a.test_client().get('/').data"),
    "grpc": ("grpc", "c = grpc.insecure_channel('127.0.0.1:1'); c.unary_unary('/a/b'); c.close()"),
    "h5py": ("h5py", "f = h5py.File('a', 'w', driver='core', backing_store=False); f['x'] = list(range(99)); f['x'][5:9]; f.close()"),
    "jinja2": ("jinja2", "jinja2.Environment().from_string('{% for i in a %}{{ i }}{% endfor %}').render(a=range(9))"),
    "joblib": ("joblib", "joblib.hash({'a': 1})"),
    "msgpack": ("msgpack", "msgpack.unpackb(msgpack.packb({'a': [1, 2.5, b'x' * 1000]}))"),
    "networkx": ("networkx as nx", "g = nx.grid_2d_graph(5, 5); nx.shortest_path(g, (0, 0), (4, 4)); nx.pagerank(g)"),
    "orjson": ("orjson", "orjson.loads(orjson.dumps({'a': [1, 2.5, 'x' * 1000]}))"),
    "packaging": ("packaging.version as v", "v.Version('1.2') < v.Version('1.10')"),
    "pillow": ("io, PIL.Image", "PIL.Image.new('RGB', (200, 100), 'red').rotate(30).save(io.BytesIO(), 'PNG')"),
    "protobuf": ("google.protobuf.struct_pb2 as p", "s = p.Struct(); s['a'] = [1, 'x']; s.SerializeToString()"),
    "psutil": ("psutil", "psutil.Process().memory_info(); psutil.virtual_memory()"),
    "pyarrow": ("pyarrow as pa, pyarrow.compute as pc", "pc.sum(pa.array(range(99))).as_py(); pa.table({'a': [1]}).to_pylist()"),
    "pygments": ("pygments.lexers as l", "list(l.PythonLexer().get_tokens('def f(): pass'))"),
    "requests": ("requests", "requests.Request('GET', 'http://localhost/').prepare(); requests.Session().close()"),
    "rich": ("io, rich.console as c", "c.Console(file=io.StringIO()).print('a')"),
    "sqlalchemy": ("sqlalchemy as s", "c = s.create_engine('sqlite://').connect(); c.execute(s.text('select 1')).all(); c.close()"),
    "starlette": ("starlette.applications as a, starlette.routing as r", "a.Starlette(routes=[r.Route('/', lambda r: None)])"),
    "tqdm": ("io, tqdm", "list(tqdm.tqdm(range(100), file=io.StringIO()))"),
    "urllib3": ("urllib3", "urllib3.PoolManager().clear(); urllib3.util.parse_url('http://a/b?c')"),
    "werkzeug": ("werkzeug.test as t", "t.EnvironBuilder('/a?b=1').get_environ()"),
    "yaml": ("yaml", "yaml.safe_load(yaml.safe_dump({'a': [1, 2, {'b': None}]}))"),
}
CACHING = {
    "lxml": ("lxml.etree as e", "a = e.Element('a'); e.SubElement(a, 'b'); e.tostring(a)"),
    "matplotlib": ("matplotlib; matplotlib.use('agg'); import matplotlib.pyplot as p", "p.figure(); p.plot([1, 2]); p.close()"),
    "numpy": ("numpy as np", "np.linalg.solve(np.eye(50) * 2, np.ones(50)); np.sort(np.arange(5000)[::-1]).mean()"),
    "pandas": ("pandas as pd", "pd.DataFrame({'a': range(500), 'b': 1.5}).groupby(lambda i: i % 7).sum().to_csv()"),
    "pydantic": ("pydantic", "pydantic.TypeAdapter(list[int]).validate_python(['1', 2])"),
    "scipy": ("scipy.optimize as o, scipy.linalg as l", "o.brentq(lambda x: x - 1, 0, 3); l.svd([[1, 2], [3, 4]])"),
    "sklearn": ("sklearn.linear_model as m", "m.LinearRegression().fit([[0], [1], [2]], [0, 1, 2]).predict([[1.5]])"),
    "tokenizers": ("tokenizers as t", "t.Tokenizer(t.models.WordLevel({'a': 0, '?': 1}, unk_token='?')).encode('a').ids"),
}


def leaks_of(imported, use, uses):
    program = f"import {imported}\ndef use():\n    {use}\nfor i in range({uses}):\n    use()"
    result, output = record([environment_python("popular"), "-c", program], env={"MPLCONFIGDIR": scratch("matplotlib")},
                            timeout=TIMEOUT_S)
    expect_equal(result.returncode, 0, f"status\n{result.stderr.decode()}\n")
    report = leaks(output)
    parts = [part for part in ("bookkeeping", "suppressed", "kept_by_imports", "kept_by_first_uses", "helpers") if part in report]
    expect_equal(report["leaked_bytes"] + sum(report[part]["bytes"] for part in parts), report["alive"]["bytes"], "bytes alive")
    return report["leaks"]


def is_clean(imported, use):
    expect_equal([(entry["bytes"], functions(entry)[:6]) for entry in leaks_of(imported, use, 1)], [], "leaks")


def keeps_nothing_for_each_use(imported, use):
    found = leaks_of(imported, use, USES)
    growing = [(entry["bytes"], entry["blocks"], functions(entry)[:6]) for entry in found if entry["blocks"] >= USES]
    expect_equal(growing, [], "leaks with a block for each use")
    assert total(found) <= CACHE_BYTES, f"{total(found)} bytes are kept"


for _check, _name_of, _programs in ((is_clean, "using_{}_is_no_leak", CLEAN),
                                    (keeps_nothing_for_each_use, "using_{}_again_keeps_nothing", CACHING)):
    for _package, _row in _programs.items():
        add_case(_name_of.format(_package), _check, *_row)
all_need("popular")

main()
