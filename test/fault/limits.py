#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Full disks, small limits, folders that can't be written: the target goes on, and nothing is lost without a word."""

import contextlib
import os
import pathlib
import resource
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "lib"))
import committed  # noqa: E402
from harness import *  # noqa: E402,F403

N_BLOCKS = 3000
MIB = 1 << 20


def run_limited(limits=(), env=None, n_blocks=N_BLOCKS, output=None):
    """
    The target under resource limits, (which, hard) or (which, soft, hard): returns its result, its counts and the
    folder of recordings.
    """

    def set_limits():
        for which, *values in limits:
            resource.setrlimit(which, (values[0], values[-1]))

    counts = committed.Counts(scratch("counts"))
    result, output = record(committed.command(counts, n_blocks), output=output, env=env, preexec_fn=set_limits)
    expect_equal(result.returncode, 9, f"status (stderr: {result.stderr.decode(errors='replace')})")
    expect_equal(counts.kept(), n_blocks, "blocks that the target has")
    return result, counts, output


def expect_all_or_a_reason(result, counts, output):
    """Either the report is complete, or the agent prints on stderr why there is none; never a
    partial report."""
    if b"torsh: nothing is recorded" not in result.stderr:
        assert recordings(output), f"no recording, and no word about it: {result.stderr!r}"
        committed.expect_all_reported(output, counts)


@contextlib.contextmanager
def small_disk(n_bytes):
    need_root()
    folder = scratch("disk")
    mounted = run(["mount", "-t", "tmpfs", "-o", f"size={n_bytes}", "tmpfs", folder])
    if mounted.returncode:
        raise Skip("may not mount a tmpfs here")
    try:
        yield folder
    finally:
        run(["umount", "-l", folder])


@case
def a_full_disk_is_reported_and_harms_nobody():
    with small_disk(MIB) as disk:
        _, counts, output = run_limited(env={"TORSH_PROFILER_RECORD": "full", "TORSH_PROFILER_RESERVE": "0"},
                                        n_blocks=1_000_000, output=disk / "out")
        assert recordings(output)
        text = torsh("report", output)
        assert "disk" in text or "space" in text, f"the full disk is not in the report:\n{text}"
        assert sum(path.stat().st_size for path in recordings(output)) <= MIB


@case
def a_reserve_of_free_space_is_left():
    with small_disk(4 * MIB) as disk:
        _, _, output = run_limited(env={"TORSH_PROFILER_RECORD": "full", "TORSH_PROFILER_RESERVE": "3M"},
                                   n_blocks=1_000_000, output=disk / "out")
        free = os.statvfs(disk)
        # A chunk may be on its way while the space is looked at.
        assert free.f_bavail * free.f_frsize >= 2 * MIB, f"{free.f_bavail * free.f_frsize} bytes are left of 4 MiB"
        text = torsh("report", output)
        assert "disk" in text or "space" in text, f"the reason of the stop is not in the report:\n{text}"


@case
def a_recording_does_not_outgrow_its_cap():
    result, counts, output = run_limited(env={"TORSH_PROFILER_RECORD": "full", "TORSH_PROFILER_MAX_SIZE": "300K"},
                                         n_blocks=1_000_000)
    assert sum(path.stat().st_size for path in recordings(output)) <= 400 << 10
    text = torsh("report", output)
    assert "MAX_SIZE" in text or "size" in text, f"the reason of the stop is not in the report:\n{text}"


@case
def a_disk_without_any_room_harms_nobody():
    with small_disk(64 << 10) as disk:
        with contextlib.suppress(OSError):
            with open(disk / "filler", "wb") as filler:
                while filler.write(bytes(4096)):
                    filler.flush()
        result, _, output = run_limited(output=disk / "out")
        assert not recordings(output) or recordings(output)[0].stat().st_size <= 64 << 10
        assert recordings(output) or b"torsh" in result.stderr, "no recording, and no word about it"


def expect_recorded_elsewhere(output, named):
    """The recording goes to the folder of temporary files, with a message."""
    temporary = scratch("temporary")
    result, counts, _ = run_limited(output=output, env={"TMPDIR": temporary})
    assert b"torsh: can't write " in result.stderr and named.encode() in result.stderr, f"stderr: {result.stderr!r}"
    committed.expect_all_reported(recordings(temporary)[0], counts)


@case
def an_output_that_may_not_be_written_is_reported():
    if os.geteuid() != 0:
        folder = scratch("read-only")
        folder.chmod(0o555)
        expect_recorded_elsewhere(folder / "out", "read-only")
        return
    # Root may write wherever the file system lets it.
    expect_recorded_elsewhere("/proc/torsh-test", "/proc/torsh-test")


def run_apart(shell, output):
    """A program in a mount namespace of its own, after what the shell does there."""
    need_root()
    if run(["unshare", "-m", "true"]).returncode:
        raise Skip("may not make a mount namespace here")
    command = shell_words("env", f"LD_PRELOAD={AGENT}", PROGRAMS / "lifecycle", "at_exit")
    return run(["unshare", "-m", "sh", "-c", f"{shell}; exec {command}"],
               {**clean_environment(), "TORSH_PROFILER_OUTPUT": str(output), "TORSH_PROFILER_SUMMARY": "0"})


@case
def without_proc_the_program_has_the_name_that_it_was_started_by():
    output = scratch()
    expect_equal(run_apart("umount -l /proc", output).returncode, 25, "status")
    report = leaks(output)
    expect_equal(pathlib.Path(report["processes"][0]["program"]).name, "lifecycle", "program")
    assert "/proc can't be read" in torsh("report", output), "the report does not say what it lacks"


@case
def no_place_for_the_socket_is_reported_with_its_name():
    result = run_apart("for d in /tmp /dev/shm /var/tmp; do mount -t tmpfs -o ro tmpfs $d; done; unset XDG_RUNTIME_DIR TMPDIR",
                       scratch())
    expect_equal(result.returncode, 25, "status")
    assert b"in /tmp (Read-only file system)" in result.stderr, result.stderr


@case
def an_output_that_cannot_be_made_is_reported():
    blocked = scratch() / "a-file"
    blocked.write_text("in the way")
    expect_recorded_elsewhere(blocked / "out", "a-file")


@case
def files_of_the_target_may_be_small():
    # The channel is a file too, as far as the kernel is concerned: SIGXFSZ must not come from it.
    result, counts, output = run_limited([(resource.RLIMIT_FSIZE, 4096)])
    expect_all_or_a_reason(result, counts, output)


def address_space(n_mib):
    limit = (resource.RLIMIT_AS, n_mib * MIB)
    bare = run(committed.command(committed.Counts(scratch("bare")), N_BLOCKS),
               preexec_fn=lambda: resource.setrlimit(limit[0], (limit[1], limit[1])))
    expect_equal(bare.returncode, 9, "status without the agent")
    result, counts, output = run_limited([limit])
    expect_all_or_a_reason(result, counts, output)


for size in (16, 64, 512):
    add_case(f"address_space_of_{size}_mib", address_space, size)


@case
def few_descriptors():
    """A soft limit is the target's alone; beyond a hard one the writer may not go, but where it has the capability."""
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    result, counts, output = run_limited([(resource.RLIMIT_NOFILE, 6, most)])
    expect_equal(result.stderr, b"", "stderr")
    committed.expect_all_reported(output, counts)
    expect_all_or_a_reason(*run_limited([(resource.RLIMIT_NOFILE, 6)], output=scratch("hard")))


# Numbers that hardly any machine has given out, and that containers have.
FIRST_USER, N_USERS = 20000, 40000


def run_as_another(limit, value):
    """The target as a user with limits, with no processes except those of this test."""
    need_root()
    user = FIRST_USER + os.getpid() % N_USERS
    output = scratch()
    os.chmod(output, 0o777)
    counts = committed.Counts(scratch("counts"))
    os.chmod(counts.path, 0o666)

    def become_another():
        os.setgid(user)
        resource.setrlimit(limit, (value, value))
        os.setuid(user)

    try:
        status = run([committed.PROGRAM], preexec_fn=become_another).returncode
    except PermissionError:
        status = None
    if status != 2:
        raise Skip("another user may not run programs of this folder")
    result, _ = record(committed.command(counts, N_BLOCKS), output=output, preexec_fn=become_another)
    expect_equal(result.returncode, 9, "status")
    expect_equal(counts.kept(), N_BLOCKS, "blocks that the target has")
    return result, counts, output


@case
def too_few_descriptors_for_the_writer():
    result, _, output = run_as_another(resource.RLIMIT_NOFILE, 6)
    assert b"torsh: nothing is recorded: " in result.stderr and b"RLIMIT_NOFILE" in result.stderr, result.stderr
    expect_equal(recordings(output), [], "recordings")


@case
def no_more_processes():
    expect_all_or_a_reason(*run_as_another(resource.RLIMIT_NPROC, 1))


@case
def no_temporary_folder():
    result, counts, output = run_limited(env={"TMPDIR": "/nonexistent", "XDG_RUNTIME_DIR": "/nonexistent"})
    committed.expect_all_reported(output, counts)


@case
def temporary_folders_are_read_only():
    need_root()
    if any(ROOT.is_relative_to(hidden) for hidden in ("/tmp", "/run", "/dev/shm")):
        raise Skip(f"this test hides the folder that {ROOT} lies in")
    output, counts = scratch(), committed.Counts(scratch("counts"))
    env = agent_environment(output)
    script = "mount -t tmpfs -o ro none /tmp && mount -t tmpfs -o ro none /dev/shm && mount -t tmpfs -o ro none /run && exec \"$@\""
    inside = ["env", *(f"{name}={env[name]}" for name in env if name.startswith(("LD_", "TORSH_")))]
    command = ["unshare", "-m", "bash", "-c", script, "bash", *inside, *committed.command(counts, N_BLOCKS)]
    result = run(command)
    if b"unshare" in result.stderr or b"mount" in result.stderr:
        raise Skip("may not make a mount namespace here")
    expect_equal(result.returncode, 9, f"status (stderr: {result.stderr!r})")
    expect_all_or_a_reason(result, counts, output)


main()
