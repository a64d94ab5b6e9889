#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""The wheel and the Debian package hold what `make install` installs, and the wheel's programs work in an environment."""

import base64
import csv
import hashlib
import os
import pathlib
import re
import sys
import zipfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
from harness import *  # noqa: E402,F403
from environments import environment_python  # noqa: E402

NEEDED = {"libc.so.6", "libm.so.6", "libpthread.so.0", "libdl.so.2", "ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1"}
EXECUTABLE = {"bin/torsh", "lib/torsh/torsh-writer"}
LEAKS = "import ctypes\nmalloc = ctypes.CDLL(None).malloc\nfor _ in range(25):\n    malloc(1 << 20)\n"


def make(target, *variables):
    """Builds nothing that `make` builds."""
    result = run(["make", "-s", "-o", "all", f"BUILD={os.environ.get('BUILD', 'build')}", *variables, target], cwd=ROOT)
    if b"make the wheel on" in result.stderr:
        raise Skip(result.stderr.decode().splitlines()[0])
    expect_equal(result.returncode, 0, f"status of make {target} ({result.stderr.decode()})")


def package(target):
    """The path of a package, made once in a run."""
    def make_it(folder):
        make(target, f"DIST={folder}")
        return [str(path) for path in pathlib.Path(folder).iterdir() if path.suffix in (".whl", ".deb")]
    paths = once(target, make_it)
    expect_equal(len(paths), 1, f"packages of make {target}")
    return pathlib.Path(paths[0])


def wheel():
    for library in ("libzstd", "liblzma", "libdw"):
        if "/" not in run(["gcc", f"-print-file-name={library}.a"]).stdout.decode():
            missing(f"there is no {library}.a here")
    return package("wheel")


def installed_names(link=False):
    prefix = scratch("installed")
    make("install", f"PREFIX={prefix}")
    return {path.relative_to(prefix).as_posix() for path in prefix.rglob("*") if path.is_file() and (link or not path.is_symlink())}


def name_in_prefix(name):
    """The name that a file of the wheel has below a prefix of `make install`; None for metadata."""
    kind = re.match(r"torsh-[^/]+\.(data/scripts|data/data|dist-info)/(.*)", name)
    if not kind:
        return f"lib/torsh/python/{name}"
    return {"data/scripts": f"bin/{kind[2]}", "data/data": kind[2], "dist-info": None}[kind[1]]


@case
def the_wheel_holds_what_make_install_installs():
    with zipfile.ZipFile(wheel()) as archive:
        modes = {name_in_prefix(entry.filename): entry.external_attr >> 16 for entry in archive.infolist()}
    del modes[None]
    shipped = {name for name in modes if re.match(r"lib/torsh/lib(?!torshagent).*\.so\.\d+$", name)}
    expect_equal(installed_names() ^ (modes.keys() - shipped), set(), "files of one only")
    for name, mode in modes.items():
        expect_equal(oct(mode), oct(0o100755 if name in EXECUTABLE else 0o100644), f"mode of {name}")


@case
def the_wheels_record_is_right():
    with zipfile.ZipFile(wheel()) as archive:
        names = archive.namelist()
        record = next(name for name in names if name.endswith("/RECORD"))
        rows = list(csv.reader(archive.read(record).decode().splitlines()))
        expect_equal([row[0] for row in rows], names, "names")
        for name, digest, n_bytes in rows:
            content = archive.read(name)
            right = "sha256=" + base64.urlsafe_b64encode(hashlib.sha256(content).digest()).decode().rstrip("=")
            expect_equal((digest, n_bytes), ("", "") if name == record else (right, str(len(content))), name)
        info = record.rpartition("/")[0]
        tag = re.search(r"(?m)^Tag: (.*)$", archive.read(f"{info}/WHEEL").decode())[1]
        metadata = archive.read(f"{info}/METADATA").decode()
    version = torsh("--version").split()[-1]
    expect_equal(wheel().name, f"torsh-{version}-{tag}.whl", "name of the wheel")
    assert f"\nVersion: {version}\n" in metadata, metadata[:300]
    for licence in re.findall(r"(?m)^License-File: (.*)$", metadata):
        assert f"{info}/{licence}" in names, licence


@case
def the_wheel_needs_the_c_library_and_no_more():
    folder = scratch("unpacked")
    with zipfile.ZipFile(wheel()) as archive:
        archive.extractall(folder)
    programs = [path for path in folder.rglob("*") if path.is_file() and path.read_bytes()[:4] == b"\x7fELF"]
    assert len(programs) >= 3, programs
    result = run([ROOT / "test/check/glibc", "2.28", *programs])
    expect_equal(result.returncode, 0, f"status of test/check/glibc ({result.stdout.decode()})")
    within = {path.name for path in programs}
    for program in programs:
        needed = set(re.findall(r"\(NEEDED\).*\[(.*)\]", run(["readelf", "-d", program]).stdout.decode()))
        expect_equal(needed - NEEDED - within, set(), f"libraries that {program.name} needs")


@case
@needs("auditwheel")
def auditwheel_agrees_with_the_tag():
    result = run([environment_python("auditwheel"), "-m", "auditwheel", "show", wheel()])
    expect_equal(result.returncode, 0, f"status of auditwheel ({result.stderr.decode()})")
    text = " ".join(result.stdout.decode().split())
    tags = re.findall(r'consistent with the following platform tag: "manylinux_2_(\d+)_\w+"', text)
    assert tags and int(tags[0]) <= 28, text


def environment():
    folder = scratch("environment")
    made = run([sys.executable, "-m", "venv", folder])
    if made.returncode:
        missing(f"no virtual environment can be made: {made.stdout.decode()[-200:]}")
    result = run([folder / "bin/pip", "install", "--no-index", wheel()])
    expect_equal(result.returncode, 0, f"status of pip install ({result.stderr.decode()})")
    return folder


@case
def the_wheel_is_installed_records_reads_and_is_removed():
    prefix, folder = environment(), scratch("work")
    if preloadable(prefix) != prefix:
        raise Skip("torsh run refuses an agent below a folder with a blank")
    expect_equal(run([prefix / "bin/pip", "check"]).returncode, 0, "status of pip check")
    (folder / "train.py").write_text(f"import sys\nassert sys.prefix == {str(prefix)!r}, sys.prefix\n{LEAKS}")
    env = dict(clean_environment(), PATH=f"{prefix / 'bin'}:{os.environ['PATH']}")
    result = run(["torsh", "run", "--no-summary", "train.py"], env, cwd=folder)
    expect_equal((result.returncode, result.stderr), (0, b""), "status and stderr of torsh run")
    expect_equal(run(["torsh", "leaks"], env, cwd=folder).returncode, 0, "status of torsh leaks")
    output = next(folder.glob("torsh-*"))
    found = json.loads(run(["torsh", "leaks", output, "--json"], env).stdout)
    expect_equal(found["leaks"][0]["bytes"], 25 << 20, "bytes of the largest leak")
    expect_equal(found, read_report("leaks", output), "the leaks, by the torsh that was built")
    result, output = record([PROGRAMS / "entries"], env={"LD_PRELOAD": prefix / "lib/torsh/libtorshagent.so"})
    expect_equal((result.returncode, result.stderr), (0, b""), "status and stderr of a program of C")
    lines = json.loads(run([prefix / "bin/torsh", "leaks", output, "--json", "--limit", "0"]).stdout)
    assert any(frame.get("line") for frame in lines["leaks"][0]["stack"]), lines["leaks"][0]
    expect_equal(lines, leaks(output), "lines of C, by the torsh that was built")
    module = run([prefix / "bin/python", "-c", "import os, torsh; print(os.path.normpath(torsh.Recording('x')._command))"])
    expect_equal(module.stdout.decode().strip(), str(prefix / "bin/torsh"), "the command of the Python module")
    expect_equal(run([prefix / "bin/pip", "uninstall", "-y", "torsh"]).returncode, 0, "status of pip uninstall")
    expect_equal(list(prefix.rglob("*torsh*")), [], "what stays")


def debian_package():
    for command in ("dpkg-deb", "dpkg-shlibdeps"):
        need_command(command)
    return package("deb")


@case
def the_debian_package_holds_what_make_install_installs():
    listed = run(["dpkg-deb", "-c", debian_package()]).stdout.decode().splitlines()
    names = {}
    for mode, owner, _, _, _, name in (line.split(None, 5) for line in listed):
        expect_equal(owner, "root/root", f"owner of {name}")
        if not mode.startswith("d"):
            names[name.split(" -> ")[0][len("./usr/"):]] = mode
    moved = {"share/zsh/site-functions/": "share/zsh/vendor-completions/", "lib/torsh/python/": "lib/python3/dist-packages/"}
    expected = set()
    for name in installed_names(link=True):
        for before, after in moved.items():
            name = name.replace(before, after)
        expected.add(name + ".gz" if name.startswith("share/man/") else name)
    own = {name for name in names if name.startswith(("share/doc/torsh/", "share/lintian/"))}
    expect_equal(expected ^ (names.keys() - own), set(), "files of one only")
    for name, mode in names.items():
        right = "-rwxr-xr-x" if name in EXECUTABLE else "lrwxrwxrwx" if name == "lib/libtorshagent.so" else "-rw-r--r--"
        expect_equal(mode, right, f"mode of {name}")


@case
def the_debian_package_depends_on_what_its_programs_need():
    fields = run(["dpkg-deb", "-f", debian_package(), "Package", "Version", "Depends"]).stdout.decode()
    assert fields.startswith(f"Package: torsh\nVersion: {torsh('--version').split()[-1]}\n"), fields
    for library in ("libc6 (", "libdw1 (", "libzstd1 ("):
        assert library in fields, fields


@case
def lintian_finds_no_errors():
    need_command("lintian")
    result = run(["lintian", "--allow-root", "--fail-on", "error", debian_package()])
    expect_equal((result.returncode, result.stdout), (0, b""), f"status and output of lintian ({result.stderr.decode()})")


main()
