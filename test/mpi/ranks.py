# SPDX-License-Identifier: Apache-2.0 OR MIT
"""ranks.py FOLDER: collectives and messages of mpi4py, of buffers and of objects, with what each of them was on a line of JSON
in FOLDER/RANK, in the words of this program."""

import array
import json
import os
import sys

from mpi4py import MPI

world = MPI.COMM_WORLD
me, n = world.Get_rank(), world.Get_size()
right, left = (me + 1) % n, (me - 1) % n
notes = [{"pid": os.getpid(), "rank": me, "size": n}]


def note(group, comm, kind, name, in_bytes, out_bytes, peer=-1, tag=-1):
    notes.append({"group": group, "group_size": comm.Get_size(), "group_rank": comm.Get_rank(), "kind": kind, "name": f"MPI_{name}",
                  "in": in_bytes, "out": out_bytes, "peer": peer, "tag": tag, "ns": -1})


mine, theirs = array.array("d", [me] * 10), array.array("d", [0] * 10)
world.Barrier()
note("world", world, "collective", "Barrier", 0, 0)
world.Allreduce(mine, theirs)
note("world", world, "collective", "Allreduce", 80, 80)
assert list(theirs) == [n * (n - 1) / 2] * 10
world.Bcast(mine, root=1)
note("world", world, "collective", "Bcast", 80 * (me == 1), 80 * (me != 1), 1)
parts = world.Split(me % 2, me)
parts.Gather(mine, array.array("d", [0] * 10 * parts.Get_size()) if parts.Get_rank() == 0 else None)
note(f"world/1:{me % 2}", parts, "collective", "Gather", 80, 80 * parts.Get_size() * (parts.Get_rank() == 0), 0)
request = parts.Iallreduce(mine, theirs)
note(f"world/1:{me % 2}", parts, "collective", "Iallreduce", 80, 80)
request.Wait()
parts.Free()
# An object's bytes are pickle's; its receiver takes the message from the queue first.
text = "x" * (100 + me)
request = world.isend(text, dest=right, tag=4)
note("world", world, "send", "Isend", len(MPI.pickle.dumps(text)), 0, right, 4)
received = world.recv(source=left, tag=4)
note("world", world, "receive", "Mrecv", 0, len(MPI.pickle.dumps(received)), left, 4)
request.wait()
world.Sendrecv(mine, right, 5, theirs, left, 5)
note("world", world, "send", "Sendrecv", 80, 0, right, 5)
note("world", world, "receive", "Sendrecv", 0, 80, left, 5)
with open(f"{sys.argv[1]}/{me}", "w") as file:
    file.writelines(json.dumps(one) + "\n" for one in notes)
print(me, received == "x" * (100 + left), list(theirs)[0], MPI.Get_library_version().split()[0])
