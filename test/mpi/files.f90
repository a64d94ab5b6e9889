! SPDX-License-Identifier: Apache-2.0 OR MIT
! files FOLDER: a file and persistent messages from Fortran, with what each call was on a line of JSON in
! FOLDER/RANK. The name's length is an argument that stands in no program.
program files
#ifdef F08
   use mpi_f08
   implicit none
   type(MPI_File) :: file
   type(MPI_Request) :: requests(2)
   type(MPI_Status) :: status
#else
   use mpi
   implicit none
   integer :: file, requests(2), status(MPI_STATUS_SIZE)
#endif
   integer :: rank, ranks, ierror, i, left, right
   integer(kind=MPI_OFFSET_KIND) :: offset
   character(len=4096) :: folder
   character(len=16) :: number
   character(len=32) :: mine, theirs

   call get_command_argument(1, folder)
   call MPI_Init(ierror)
   call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierror)
   call MPI_Comm_size(MPI_COMM_WORLD, ranks, ierror)
   write (number, '(i0)') rank
   open (10, file=trim(folder)//'/'//trim(number))
   write (10, '(a,i0,a)') '{"rank": ', rank, '}'
   mine = repeat(achar(97 + rank), 32)
   call MPI_File_open(MPI_COMM_WORLD, trim(folder)//'/file', ior(MPI_MODE_CREATE, MPI_MODE_RDWR), MPI_INFO_NULL, file, ierror)
   if (ierror /= MPI_SUCCESS) stop 1
   offset = rank*32
   call MPI_File_write_at(file, offset, mine, 32, MPI_CHARACTER, MPI_STATUS_IGNORE, ierror)
   call note('world/1', 'write', 'MPI_File_write_at', 32, 0, -1, -1)
   call MPI_File_read_at(file, offset, theirs, 9, MPI_CHARACTER, status, ierror)
   call note('world/1', 'read', 'MPI_File_read_at', 0, 9, -1, -1)
   if (theirs(1:9) /= mine(1:9)) stop 2
   call MPI_File_write_at_all(file, offset, mine, 32, MPI_CHARACTER, MPI_STATUS_IGNORE, ierror)
   call note('world/1', 'write', 'MPI_File_write_at_all', 32, 0, -1, -1)
   call MPI_File_close(file, ierror)
   left = modulo(rank - 1, ranks)
   right = modulo(rank + 1, ranks)
   call MPI_Recv_init(theirs, 21, MPI_CHARACTER, left, 5, MPI_COMM_WORLD, requests(1), ierror)
   call MPI_Send_init(mine, 21, MPI_CHARACTER, right, 5, MPI_COMM_WORLD, requests(2), ierror)
   do i = 1, 3
      call MPI_Startall(2, requests, ierror)
      call note('world', 'receive', 'MPI_Recv_init', 0, 21, left, 5)
      call note('world', 'send', 'MPI_Send_init', 21, 0, right, 5)
      call MPI_Waitall(2, requests, MPI_STATUSES_IGNORE, ierror)
   end do
   call MPI_Request_free(requests(1), ierror)
   call MPI_Request_free(requests(2), ierror)
   close (10)
   call MPI_Finalize(ierror)
   print '(a,i0,a)', 'rank ', rank, theirs(1:1)
contains
   subroutine note(group, kind, name, in, out, peer, tag)
      character(len=*), intent(in) :: group, kind, name
      integer, intent(in) :: in, out, peer, tag

      write (10, '(9a,i0,a,i0,a,i0,a,i0,a,i0,a,i0,a)') '{"group": "', group, '", "kind": "', kind, '", "name": "', name, &
         '", ', '"ns": -1', ', "group_size": ', ranks, ', "group_rank": ', rank, ', "in": ', in, ', "out": ', out, &
         ', "peer": ', peer, ', "tag": ', tag, '}'
   end subroutine
end program
