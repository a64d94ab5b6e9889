# SPDX-License-Identifier: Apache-2.0 OR MIT
"""MPI by ctypes: the library is opened, and its functions are looked up by their names."""

import ctypes
import sys

mpi = ctypes.CDLL(sys.argv[1], ctypes.RTLD_GLOBAL)
world = ctypes.c_void_p(ctypes.addressof(ctypes.c_char.in_dll(mpi, "ompi_mpi_comm_world")))
mpi.MPI_Init(None, None)
for _ in range(3):
    mpi.MPI_Barrier(world)
mpi.MPI_Finalize()
