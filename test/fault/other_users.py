#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""
Another user may write where a recording goes, and has laid links and directories under every name that will be used. What
those lead to stays as it is, and what is written is its owner's alone.
"""

import pathlib
import stat
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "lib"))
from harness import *  # noqa: E402,F403
from live_targets import Target  # noqa: E402

NOBODY = 65534
SECRET = b"the owner's alone\n"
# FORMAT: what the file beside NAME.torsh is called.
ENDINGS = {
    "chrome": ".json", "perfetto": ".pftrace", "csv": ".csv", "sqlite": ".sqlite", "speedscope": ".speedscope.json",
    "pprof": ".pb.gz", "json": ".events.json", "folded": ".folded", "profile": ".profile.json", "html": ".html",
}
PROGRAM = [PROGRAMS / "regions"]


class Shared:
    """A directory as /tmp is, and a file of the tested user's that nobody may touch."""

    def __init__(self):
        need_root()
        self.path = scratch("shared")
        self.path.chmod(0o1777)
        self.secret = scratch("owned") / "secret"
        self.secret.write_bytes(SECRET)
        self.secret.chmod(0o600)
        self.elsewhere = scratch("elsewhere")

    def lay_link(self, name):
        link = self.path / name
        link.symlink_to(self.secret)
        os.lchown(link, NOBODY, NOBODY)
        return link

    def lay_directory(self, name):
        folder = self.path / name
        folder.mkdir(mode=0o777)
        os.chown(folder, NOBODY, NOBODY)
        return folder

    def record(self, output, **variables):
        return record(PROGRAM, output, env=dict(variables, TMPDIR=self.elsewhere), umask=0)[0]

    def expect_untouched(self):
        expect_equal((self.secret.read_bytes(), stat.S_IMODE(self.secret.stat().st_mode)), (SECRET, 0o600), "the secret")
        assert self.secret.stat().st_nlink == 1 or (self.path / "linked.torsh").exists()


def expect_private(path):
    status = path.lstat()
    wanted = 0o700 if stat.S_ISDIR(status.st_mode) else 0o600
    assert stat.S_ISREG(status.st_mode) or stat.S_ISDIR(status.st_mode), f"{path} is no file and no directory"
    expect_equal((stat.S_IMODE(status.st_mode), status.st_uid), (wanted, os.geteuid()), f"mode and owner of {path}")


def expect_readable(recording):
    expect_private(recording)
    assert read_report("report", recording)["processes"], recording


@case
def recordings_and_their_directories_are_private():
    shared = Shared()
    shared.record(shared.path / "new/out")
    for path in (shared.path / "new", shared.path / "new/out"):
        expect_private(path)
    expect_readable(recordings(shared.path / "new/out")[0])


@case
def directory_of_another_user_is_not_used():
    shared = Shared()
    planted = shared.lay_directory("out")
    result = shared.record(planted)
    expect_equal(list(planted.iterdir()), [], "what is in the other's directory")
    assert b"it belongs to another user" in result.stderr, result.stderr
    expect_readable(recordings(shared.elsewhere)[0])


@case
def link_of_another_user_to_a_directory_is_not_followed():
    shared = Shared()
    own = scratch("own")
    link = shared.path / "out"
    link.symlink_to(own)
    os.lchown(link, NOBODY, NOBODY)
    result = shared.record(link)
    expect_equal(list(own.iterdir()), [], "what the link led to")
    assert b"another user" in result.stderr or b"Permission denied" in result.stderr, result.stderr
    expect_readable(recordings(shared.elsewhere)[0])


def run_in_guessed_directory(shared):
    """The other user has made the directory that is used by default; returns its path."""
    def lay():
        os.umask(0)
        shared.lay_directory(f"torsh-regions-{os.getpid()}")

    env = agent_environment("unused")
    del env["TORSH_PROFILER_OUTPUT"]
    process = subprocess.Popen(PROGRAM, env=env, cwd=shared.path, preexec_fn=lay, stdout=subprocess.DEVNULL,
                               stderr=subprocess.DEVNULL)
    process.wait(TIMEOUT_S)
    return shared.path / f"torsh-regions-{process.pid}"


@case
def guessed_name_of_the_default_directory_is_not_used():
    shared = Shared()
    planted = run_in_guessed_directory(shared)
    own = wait_until(lambda: recordings(f"{planted}.1"), "a recording beside the other's directory")
    expect_equal(list(planted.iterdir()), [], "what is in the other's directory")
    expect_private(own[0].parent)
    expect_private(own[0])


@case
def named_recording_replaces_a_link():
    shared = Shared()
    link = shared.lay_link("x.torsh")
    shared.record(link)
    shared.expect_untouched()
    expect_readable(link)


@case
def named_recording_leaves_what_has_a_second_name():
    shared = Shared()
    linked = shared.path / "linked.torsh"
    os.link(shared.secret, linked)
    shared.record(linked)
    expect_equal(shared.secret.read_bytes(), SECRET, "the secret")
    expect_readable(linked)


@case
def what_is_no_file_is_not_recorded_into():
    shared = Shared()
    pipe = shared.path / "x.torsh"
    os.mkfifo(pipe)
    result = shared.record(pipe)
    assert b"can't write" in result.stderr, result.stderr
    assert stat.S_ISFIFO(pipe.lstat().st_mode)
    expect_readable(recordings(shared.elsewhere)[0])


@case
def exports_at_the_end_replace_links():
    shared = Shared()
    laid = [shared.lay_link(f"x{ending}{more}") for ending in ENDINGS.values() for more in ("", ".tmp")]
    shared.record(shared.path / "x.torsh", TORSH_PROFILER_EXPORT_FORMAT=",".join(ENDINGS))
    shared.expect_untouched()
    for link in laid:
        if link.suffix == ".tmp":
            assert link.is_symlink(), f"{link} was written to"
        else:
            expect_private(link)


@case
def exports_by_hand_replace_links():
    shared = Shared()
    recording = shared.path / "x.torsh"
    shared.record(recording)
    for name, ending in ENDINGS.items():
        paths = [shared.lay_link(f"y{ending}"), shared.lay_link(f"y{ending}.tmp")]
        torsh("export", recording, "--format", name, "-o", paths[0])
        expect_private(paths[0])
    shared.expect_untouched()


@case
def tensorboards_directory_is_not_another_users():
    shared = Shared()
    recording = shared.path / "x.torsh"
    shared.record(recording)
    planted = shared.lay_directory("board")
    torsh("export", recording, "--format", "tensorboard", "-o", planted, expect=2)
    expect_equal(list(planted.iterdir()), [], "what is in the other's directory")
    own = shared.path / "own"
    torsh("export", recording, "--format", "tensorboard", "-o", own)
    for path in [own, *own.rglob("*")]:
        expect_private(path)


@case
def snapshots_are_not_written_through_links():
    shared = Shared()
    link = shared.lay_link("x.torsh")
    with Target() as target:
        target.send("a")
        run([TORSH, "snapshot", target.pid, "-o", link])
    shared.expect_untouched()
    assert link.is_symlink() or stat.S_IMODE(link.stat().st_mode) == 0o600


@case
def exports_go_into_pipes_and_terminals():
    shared = Shared()
    recording = shared.path / "x.torsh"
    shared.record(recording)
    whole = torsh("export", recording, "--format", "folded")
    expect_equal(torsh("export", recording, "--format", "folded", "-o", "/dev/stdout"), whole, "what goes to /dev/stdout")
    torsh("export", recording, "--format", "chrome", "-o", "/dev/null")
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode), "/dev/null was replaced"


main()
