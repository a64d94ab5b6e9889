! SPDX-License-Identifier: Apache-2.0 OR MIT
! messages FOLDER: collectives and messages from Fortran, by `use mpi_f08` or else `use mpi`, with what each of them was on a line of
! JSON in FOLDER/RANK, in the words of this program.
program messages
#ifdef F08
  use mpi_f08
#else
  use mpi
#endif
  implicit none
#ifdef F08
  type(MPI_Comm) :: world, parts
  type(MPI_Request) :: requests(3)
  type(MPI_Status) :: status
#else
  integer :: world, parts, requests(3), status(MPI_STATUS_SIZE)
#endif
  integer :: me, n, own, n_own, right, left, ierror, i
  double precision :: mine(64), theirs(64)
  integer :: counts(4), places(4)
  logical :: flag
  character(len=4096) :: folder
  character(len=16) :: digits

  call MPI_Init(ierror)
  world = MPI_COMM_WORLD
  call MPI_Comm_rank(world, me, ierror)
  call MPI_Comm_size(world, n, ierror)
  call get_command_argument(1, folder)
  write(digits, '(i0)') me
  open(unit=7, file=trim(folder) // '/' // trim(digits))
  write(7, '(a,i0,a)') '{"rank": ', me, '}'
  mine = me
  right = mod(me + 1, n)
  left = mod(me + n - 1, n)

  call MPI_Barrier(world, ierror)
  call note('world', n, me, 'collective', 'Barrier', 0, 0, -1, -1)
  call MPI_Bcast(mine, 5, MPI_DOUBLE_PRECISION, 2, world, ierror)
  call note('world', n, me, 'collective', 'Bcast', merge(40, 0, me == 2), merge(0, 40, me == 2), 2, -1)
  call MPI_Allreduce(mine, theirs, 8, MPI_DOUBLE_PRECISION, MPI_SUM, world, ierror)
  call note('world', n, me, 'collective', 'Allreduce', 64, 64, -1, -1)
  call MPI_Allreduce(MPI_IN_PLACE, theirs, 3, MPI_DOUBLE_PRECISION, MPI_SUM, world, ierror)
  call note('world', n, me, 'collective', 'Allreduce', 24, 24, -1, -1)
  do i = 1, 4
    counts(i) = 2
    places(i) = 2 * i - 2
  end do
  call MPI_Alltoallv(MPI_IN_PLACE, counts, places, MPI_DOUBLE_PRECISION, theirs, counts, places, MPI_DOUBLE_PRECISION, world, ierror)
  call note('world', n, me, 'collective', 'Alltoallv', 16 * n, 16 * n, -1, -1)

  call MPI_Comm_split(world, mod(me, 2), me, parts, ierror)
  call MPI_Comm_rank(parts, own, ierror)
  call MPI_Comm_size(parts, n_own, ierror)
  call MPI_Gather(mine, 3, MPI_DOUBLE_PRECISION, theirs, 3, MPI_DOUBLE_PRECISION, 1, parts, ierror)
  call note(merge('world/1:0', 'world/1:1', mod(me, 2) == 0), n_own, own, 'collective', 'Gather', 24, &
            merge(24 * n_own, 0, own == 1), 1, -1)
  call MPI_Comm_free(parts, ierror)

  call MPI_Irecv(theirs, 64, MPI_DOUBLE_PRECISION, left, 3, world, requests(1), ierror)
  call note('world', n, me, 'receive', 'Irecv', 0, 32, left, 3)
  call MPI_Isend(mine, 4, MPI_DOUBLE_PRECISION, right, 3, world, requests(2), ierror)
  call note('world', n, me, 'send', 'Isend', 32, 0, right, 3)
  call MPI_Iallreduce(mine, theirs(40:), 2, MPI_DOUBLE_PRECISION, MPI_SUM, world, requests(3), ierror)
  call note('world', n, me, 'collective', 'Iallreduce', 16, 16, -1, -1)
  call MPI_Waitall(3, requests, MPI_STATUSES_IGNORE, ierror)
  call MPI_Send(mine, 1, MPI_DOUBLE_PRECISION, right, 4, world, ierror)
  call note('world', n, me, 'send', 'Send', 8, 0, right, 4)
  call MPI_Recv(theirs, 64, MPI_DOUBLE_PRECISION, MPI_ANY_SOURCE, MPI_ANY_TAG, world, MPI_STATUS_IGNORE, ierror)
  call note('world', n, me, 'receive', 'Recv', 0, 8, left, 4)
  call MPI_Sendrecv(mine, 2, MPI_DOUBLE_PRECISION, right, 5, theirs, 64, MPI_DOUBLE_PRECISION, left, 5, world, status, ierror)
  call note('world', n, me, 'send', 'Sendrecv', 16, 0, right, 5)
  call note('world', n, me, 'receive', 'Sendrecv', 0, 16, left, 5)
  call MPI_Ibcast(mine, 6, MPI_DOUBLE_PRECISION, 0, world, requests(1), ierror)
  call note('world', n, me, 'collective', 'Ibcast', merge(48, 0, me == 0), merge(0, 48, me == 0), 0, -1)
  flag = .false.
  do while (.not. flag)
    call MPI_Test(requests(1), flag, status, ierror)
  end do
  close(7)
  call MPI_Finalize(ierror)
  print '(a,i0,a,f8.1)', 'rank ', me, ': ', theirs(1) + mine(1)
contains
  subroutine note(group, group_size, group_rank, kind, name, in, out, peer, tag)
    character(len=*), intent(in) :: group, kind, name
    integer, intent(in) :: group_size, group_rank, in, out, peer, tag

    write(7, '(5a,i0,a,i0,5a)', advance='no') '{"group": "', group, '", "name": "MPI_', name, '", "group_size": ', group_size, &
      ', "group_rank": ', group_rank, ', "kind": "', kind, '"', ', "ns": -1', ''
    write(7, '(a,i0,a,i0,a,i0,a,i0,a)') ', "in": ', in, ', "out": ', out, ', "peer": ', peer, ', "tag": ', tag, '}'
  end subroutine
end program
