#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""What `make install` puts somewhere works there, by every path that leads to it."""

import os
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
from harness import *  # noqa: E402,F403
from timeline import timeline  # noqa: E402

PROGRAM = PROGRAMS / "entries"


def install(*variables):
    """Installs what is built, and builds nothing."""
    result = run(["make", "-s", "-o", "all", f"BUILD={os.environ.get('BUILD', 'build')}", *variables, "install"], cwd=ROOT)
    expect_equal(result.returncode, 0, f"status of make install ({result.stderr.decode()})")


def expect_recorded(prefix, result, output):
    expect_equal((result.returncode, result.stderr), (0, b""), "status and stderr")
    report = json.loads(run([prefix / "bin/torsh", "leaks", output, "--json", "--limit", "0"]).stdout)
    expect_equal(total(entries_through(report["leaks"], "leak_large")), 100 << 20, "bytes of leak_large")


def preload(path):
    prefix = scratch("prefix")
    install(f"PREFIX={prefix}")
    result, output = record([PROGRAM], env={"LD_PRELOAD": path(preloadable(prefix))}, cwd=prefix)
    expect_recorded(prefix, result, output)


for name, path in (("by_its_path", lambda prefix: prefix / "lib/torsh/libtorshagent.so"),
                   ("by_the_link_to_it", lambda prefix: prefix / "lib/libtorshagent.so"),
                   ("by_a_relative_path", lambda prefix: "lib/libtorshagent.so")):
    add_case(f"preloaded_{name}", preload, path)


@case
def torsh_run_finds_the_installed_agent():
    prefix = scratch("prefix")
    install(f"DESTDIR={prefix}", "PREFIX=/usr")
    usr, output = prefix / "usr", scratch()
    if preloadable(usr) != usr:
        raise Skip("torsh run refuses an agent below a folder with a blank")
    result = run([usr / "bin/torsh", "run", "--output", output, "--no-summary", "--", PROGRAM])
    expect_recorded(usr, result, output)


@case
def what_programs_include_and_import_is_installed():
    prefix, folder = scratch("prefix"), scratch("built")
    install(f"PREFIX={prefix}")
    (folder / "marks.c").write_text('#include <torsh.h>\nint main(void) { torsh_mark("by C"); return 0; }\n')
    made = run(["gcc", f"-I{prefix / 'include'}", "-o", folder / "marks", folder / "marks.c"])
    expect_equal((made.returncode, made.stderr), (0, b""), "status and stderr of the compiler")
    python = [sys.executable, "-c", "import torsh; torsh.mark('by Python'); print(torsh.Recording('x')._command)"]
    for command, printed in (([folder / "marks"], b""), (python, f"{prefix}/bin/torsh\n".encode())):
        result, output = record(command, env={"PYTHONPATH": str(prefix / "lib/torsh/python")})
        expect_equal((result.returncode, os.path.normpath(result.stdout.strip() or b"")), (0, os.path.normpath(printed.strip())),
                     f"status and output ({result.stderr})")
        expect_equal([event["name"][:3] for event in timeline(output)], ["by "], "marks")


@case
def manual_pages_and_completions_are_installed():
    prefix = scratch("prefix")
    install(f"PREFIX={prefix}")
    pages = {path.name for path in (prefix / "share/man").glob("man*/*")}
    sources = {path.name for path in (ROOT / "tools/man").rglob("torsh*.[157]")}
    assert {"torsh.1", "torsh-leaks.1", "torsh-variables.7", "torsh-formats.5"} <= sources, sources
    expect_equal(sources ^ pages, set(), "pages that are only in tools/man, or only installed")
    for path in (prefix / "share/man").glob("man*/*"):
        assert path.parent.name == f"man{path.suffix[1:]}" and not any(line.startswith("@") for line in path.read_text().splitlines()), path
    for path in ("bash-completion/completions/torsh", "zsh/site-functions/_torsh", "fish/vendor_completions.d/torsh.fish"):
        assert "perfetto" in (prefix / "share" / path).read_text(), path


@case
def make_uninstall_removes_what_make_install_puts():
    prefix = scratch("prefix")
    (prefix / "usr/lib").mkdir(parents=True)
    (prefix / "usr/lib/other").write_text("stays")
    install(f"DESTDIR={prefix}", "PREFIX=/usr")
    result = run(["make", "-s", f"BUILD={os.environ.get('BUILD', 'build')}", f"DESTDIR={prefix}", "PREFIX=/usr", "uninstall"], cwd=ROOT)
    expect_equal(result.returncode, 0, f"status of make uninstall ({result.stderr.decode()})")
    left = [path for path in prefix.rglob("*") if not path.is_dir() or "torsh" in path.name]
    expect_equal(left, [prefix / "usr/lib/other"], "what is left")


@case
def pkg_config_finds_the_header():
    need_command("pkg-config")
    prefix, folder = scratch("prefix"), scratch("built")
    install(f"DESTDIR={prefix}", "PREFIX=/opt")
    env = dict(clean_environment(), PKG_CONFIG_PATH=str(prefix / "opt/share/pkgconfig"))
    expect_equal(run(["pkg-config", "--modversion", "torsh"], env).stdout.decode().strip(), torsh("--version").split()[-1], "version")
    flags = run(["pkg-config", "--cflags", "--libs", "torsh"], env).stdout.decode().split()
    (folder / "marks.c").write_text('#include <torsh.h>\nint main(void) { torsh_mark("by C"); return 0; }\n')
    made = run(["gcc", *flags, "-o", folder / "marks", folder / "marks.c"])
    expect_equal((made.returncode, made.stderr), (0, b""), "status and stderr of the compiler")
    expect_equal(run([folder / "marks"]).returncode, 0, "status without the agent")


main()
