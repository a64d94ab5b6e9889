/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Constants from the public headers: Open MPI's mpi.h (4 and 5), MPICH's (the ABI that 3.1 to 5.0,
 * Intel MPI, MVAPICH and Cray MPICH have in common), and mpi_abi.h of the MPI 5 standard.
 */
#include <string.h>

#include "shim/loader/objects.h"
#include "shim/mpi/mpi.h"

struct mpi_library torsh_mpi;

static const struct mpi_library open_mpi = {
	.name = "openmpi",
	.any_source = -1,
	.any_tag = -1,
	.no_process = -2,
	.root = -4,
	.handle_bytes = 8,
	.status_bytes = 24,
	.status_source = 0,
	.status_tag = 4,
	.status_count = 16,
	.in_place = 1,
};

static const struct mpi_library mpich = {
	.name = "mpich",
	.world = 0x44000000,
	.self = 0x44000001,
	.comm_null = 0x04000000,
	.request_null = 0x2c000000,
	.message_null = 0x2c000000,
	.message_no_process = 0x6c000000,
	.any_source = -2,
	.any_tag = -1,
	.no_process = -1,
	.root = -3,
	.handle_bytes = 4,
	.status_bytes = 20,
	.status_source = 8,
	.status_tag = 12,
	.status_count = 0,
	.in_place = UINTPTR_MAX,
	.no_status = 1,
	.no_statuses = 1,
};

#define STANDARD_BYTE 0x247 /* MPI_BYTE */

static const struct mpi_library standard = {
	.name = "mpi_abi",
	.world = 0x101,
	.self = 0x102,
	.comm_null = 0x100,
	.request_null = 0x180,
	.message_null = 0x128,
	.message_no_process = 0x129,
	.any_source = -1,
	.any_tag = -2,
	.no_process = -3,
	.root = -4,
	.handle_bytes = 8,
	.status_bytes = 32,
	.status_source = 0,
	.status_tag = 4,
	.in_place = 1,
};

/* The library's own definitions, past any other tool's. */
static struct {
	int (*Initialized)(int *);
	int (*Finalized)(int *);
	int (*Comm_rank)(uintptr_t, int *);
	int (*Comm_size)(uintptr_t, int *);
	int (*Comm_test_inter)(uintptr_t, int *);
	int (*Comm_group)(uintptr_t, uint64_t *);
	int (*Group_translate_ranks)(uintptr_t, int, const int *, uintptr_t, int *);
	int (*Group_free)(uint64_t *);
	int (*Type_size)(uintptr_t, int *);
	int (*Get_elements_c)(const void *, uintptr_t, int64_t *); /* of the standard only */
	/* Of Fortran's numbers; NULL in MPICH, where they are the handles. */
	uintptr_t (*comm_of)(int);
	uintptr_t (*type_of)(int);
	uintptr_t (*request_of)(int);
	uintptr_t (*message_of)(int);
	uintptr_t (*window_of)(int);
	uintptr_t (*file_of)(int); /* of MPICH, too */
} own;

static bool find_functions(void)
{
	bool is_whole = true;

#define FIND(name)                                                       \
	do {                                                             \
		*(void **)&own.name = torsh_objects_find("PMPI_" #name); \
		is_whole &= own.name != NULL;                            \
	} while (0)
	FIND(Initialized);
	FIND(Finalized);
	FIND(Comm_rank);
	FIND(Comm_size);
	FIND(Comm_test_inter);
	FIND(Comm_group);
	FIND(Group_translate_ranks);
	FIND(Group_free);
	FIND(Type_size);
#undef FIND
	return is_whole;
}

/* "f2c" in Open MPI, "fromint" in the standard's interface. */
static bool find_conversions(const char *comm, const char *type, const char *request,
			     const char *message, const char *window, const char *file)
{
	*(void **)&own.comm_of = torsh_objects_find(comm);
	*(void **)&own.type_of = torsh_objects_find(type);
	*(void **)&own.request_of = torsh_objects_find(request);
	*(void **)&own.message_of = torsh_objects_find(message);
	*(void **)&own.window_of = torsh_objects_find(window);
	*(void **)&own.file_of = torsh_objects_find(file);
	return own.comm_of && own.type_of && own.request_of && own.message_of;
}

static uint64_t address_of(const char *name)
{
	return (uintptr_t)torsh_objects_find(name);
}

/* One of the names that compilers give to a Fortran common block. */
static const void *common_block(const char *lower, const char *upper)
{
	void *found = torsh_objects_find(lower);

	return found ? found : torsh_objects_find(upper);
}

static bool find_open_mpi(struct mpi_library *found)
{
	*found = open_mpi;
	found->world = address_of("ompi_mpi_comm_world");
	found->self = address_of("ompi_mpi_comm_self");
	found->comm_null = address_of("ompi_mpi_comm_null");
	found->request_null = address_of("ompi_request_null");
	found->request_empty = address_of("ompi_request_empty");
	found->message_null = address_of("ompi_message_null");
	found->message_no_process = address_of("ompi_message_no_proc");
	found->abi = MPI_ABI_OPEN_MPI;
	return found->world && found->self && found->comm_null && found->request_null &&
	       find_conversions("PMPI_Comm_f2c", "PMPI_Type_f2c", "PMPI_Request_f2c",
				"PMPI_Message_f2c", "PMPI_Win_f2c", "PMPI_File_f2c");
}

/* Where Fortran's constants are, as far as its library is loaded. */
static void find_fortran(struct mpi_library *library)
{
	void *const *place;

	if (library->abi == MPI_ABI_OPEN_MPI) {
		library->fortran_in_place =
			common_block("mpi_fortran_in_place_", "MPI_FORTRAN_IN_PLACE");
		library->fortran_no_status =
			common_block("mpi_fortran_status_ignore_", "MPI_FORTRAN_STATUS_IGNORE");
		library->fortran_no_statuses =
			common_block("mpi_fortran_statuses_ignore_", "MPI_FORTRAN_STATUSES_IGNORE");
	} else if (library->abi == MPI_ABI_MPICH) {
		place = torsh_objects_find("MPIR_F_MPI_IN_PLACE");
		library->fortran_in_place = place ? *place : NULL;
		place = torsh_objects_find("MPI_F_STATUS_IGNORE");
		library->fortran_no_status = place ? *place : NULL;
		place = torsh_objects_find("MPI_F_STATUSES_IGNORE");
		library->fortran_no_statuses = place ? *place : NULL;
	}
}

bool torsh_mpi_find(void)
{
	struct mpi_library found = {0};
	const void *init;

	if (torsh_mpi.abi)
		return true;
	init = torsh_objects_find("PMPI_Init");
	if (!init || !find_functions())
		return false;
	if (torsh_objects_lies_in("libmpi_abi.so", init)) {
		if (!find_conversions("PMPI_Comm_fromint", "PMPI_Type_fromint",
				      "PMPI_Request_fromint", "PMPI_Message_fromint",
				      "PMPI_Win_fromint", "PMPI_File_fromint"))
			return false;
		*(void **)&own.Get_elements_c = torsh_objects_find("PMPI_Get_elements_c");
		if (!own.Get_elements_c)
			return false;
		found = standard;
		found.abi = MPI_ABI_STANDARD;
	} else if (torsh_objects_find("MPIR_Err_return_comm") ||
		   torsh_objects_lies_in("libmpi.so.12", init) ||
		   torsh_objects_lies_in("libmpich.so.12", init)) {
		found = mpich;
		found.abi = MPI_ABI_MPICH;
		*(void **)&own.file_of = torsh_objects_find("PMPI_File_f2c");
	} else if (!find_open_mpi(&found)) {
		return false;
	}
	find_fortran(&found);
	torsh_mpi_topology_find(&found);
	torsh_mpi = found;
	return true;
}

/* ---- arguments ------------------------------------------------------------------------------- */

int torsh_mpi_int(const struct mpi_arguments *arguments, uint8_t i)
{
	uintptr_t value = torsh_mpi_argument(arguments, i);

	return torsh_mpi_is_fortran(arguments->form) ? *(const int *)value : (int)value;
}

int64_t torsh_mpi_count(const struct mpi_arguments *arguments, uint8_t i)
{
	uintptr_t value = torsh_mpi_argument(arguments, i);

	if (arguments->form == MPI_IN_C_LARGE)
		return (int64_t)value;
	return torsh_mpi_int(arguments, i);
}

int64_t torsh_mpi_count_of(const struct mpi_arguments *arguments, uint8_t i, uint32_t rank)
{
	const void *counts = (const void *)torsh_mpi_argument(arguments, i);

	if (!counts)
		return 0;
	return arguments->form == MPI_IN_C_LARGE ? ((const int64_t *)counts)[rank]
						 : ((const int *)counts)[rank];
}

/* The handle at an address. */
static uint64_t stored_handle(const void *place)
{
	uint64_t handle = 0;

	memcpy(&handle, place, torsh_mpi.handle_bytes);
	return handle;
}

/* A handle of C in an argument or, stored, at the address there. */
static uint64_t handle_in_c(uintptr_t value, bool is_stored)
{
	if (is_stored)
		return stored_handle((const void *)value);
	return torsh_mpi.handle_bytes == 4 ? (uint32_t)value : value;
}

/* The C handle of a Fortran number: in MPICH they are the same. */
static uint64_t handle_in_fortran(int number, uintptr_t (*handle_of)(int))
{
	return torsh_mpi.abi == MPI_ABI_MPICH ? (uint32_t)number : handle_of(number);
}

uint64_t torsh_mpi_comm(const struct mpi_arguments *arguments, uint8_t i, bool is_stored)
{
	uintptr_t value = torsh_mpi_argument(arguments, i);

	if (torsh_mpi_is_fortran(arguments->form))
		return handle_in_fortran(*(const int *)value, own.comm_of);
	return handle_in_c(value, is_stored);
}

/* A file's handle is a pointer everywhere. */
static uint64_t file_handle(const struct mpi_arguments *arguments, uintptr_t value, bool is_stored)
{
	uint64_t handle;

	if (torsh_mpi_is_fortran(arguments->form))
		return own.file_of ? own.file_of(*(const int *)value) : 0;
	if (!is_stored)
		return value;
	memcpy(&handle, (const void *)value, sizeof(handle));
	return handle;
}

uint64_t torsh_mpi_object(const struct mpi_arguments *arguments, uint8_t i, bool is_stored,
			  enum mpi_object object)
{
	uintptr_t value = torsh_mpi_argument(arguments, i);

	if (object == MPI_FILE)
		return file_handle(arguments, value, is_stored);
	if (object == MPI_COMMUNICATOR || !torsh_mpi_is_fortran(arguments->form))
		return torsh_mpi_comm(arguments, i, is_stored);
	if (torsh_mpi.abi != MPI_ABI_MPICH && !own.window_of)
		return 0;
	return handle_in_fortran(*(const int *)value, own.window_of);
}

static int64_t type_bytes(uint64_t type)
{
	int bytes = -1;

	return own.Type_size(type, &bytes) || bytes < 0 ? -1 : bytes;
}

int64_t torsh_mpi_type_bytes(const struct mpi_arguments *arguments, uint8_t i)
{
	uintptr_t value = torsh_mpi_argument(arguments, i);

	if (torsh_mpi_is_fortran(arguments->form))
		return type_bytes(handle_in_fortran(*(const int *)value, own.type_of));
	return type_bytes(handle_in_c(value, false));
}

int64_t torsh_mpi_array_type_bytes(const struct mpi_arguments *arguments, uint8_t i, uint32_t rank)
{
	uintptr_t value = torsh_mpi_argument(arguments, i);

	if (torsh_mpi_is_fortran(arguments->form))
		return type_bytes(handle_in_fortran(((const int *)value)[rank], own.type_of));
	return type_bytes(handle_in_c(value + (uintptr_t)rank * torsh_mpi.handle_bytes, true));
}

uint64_t torsh_mpi_request(const struct mpi_arguments *arguments, uint8_t i, uint32_t of)
{
	uintptr_t value = torsh_mpi_argument(arguments, i);
	uint64_t request;

	if (torsh_mpi_is_fortran(arguments->form))
		request = handle_in_fortran(((const int *)value)[of], own.request_of);
	else
		request = handle_in_c(value + (uintptr_t)of * torsh_mpi.handle_bytes, true);
	return request == torsh_mpi.request_null ? 0 : request;
}

bool torsh_mpi_is_complete(uint64_t request)
{
	if (torsh_mpi.abi == MPI_ABI_OPEN_MPI)
		return request == torsh_mpi.request_empty;
	/* MPICH's handles have a kind in their uppermost bits: 1 is what is built in. */
	return request >> 30 == 1;
}

uint64_t torsh_mpi_message(const struct mpi_arguments *arguments, uint8_t i)
{
	uintptr_t value = torsh_mpi_argument(arguments, i);
	uint64_t message = torsh_mpi_is_fortran(arguments->form)
				   ? handle_in_fortran(*(const int *)value, own.message_of)
				   : handle_in_c(value, true);

	return message == torsh_mpi.message_null || message == torsh_mpi.message_no_process
		       ? 0
		       : message;
}

bool torsh_mpi_ignores_status(const struct mpi_arguments *arguments, const struct mpi_layout *at)
{
	uintptr_t value = torsh_mpi_argument(arguments, at->status);

	if (!torsh_mpi_is_fortran(arguments->form))
		return value == (at->has_statuses ? torsh_mpi.no_statuses : torsh_mpi.no_status);
	return (const void *)value ==
	       (at->has_statuses ? torsh_mpi.fortran_no_statuses : torsh_mpi.fortran_no_status);
}

bool torsh_mpi_is_in_place(const struct mpi_arguments *arguments, uint8_t i)
{
	uintptr_t value = torsh_mpi_argument(arguments, i);

	if (torsh_mpi_is_fortran(arguments->form))
		return value && (const void *)value == torsh_mpi.fortran_in_place;
	return value == torsh_mpi.in_place;
}

/* Fortran's false is 0, its true may be any other number. */
bool torsh_mpi_is_set(const struct mpi_arguments *arguments, uint8_t i)
{
	return *(const int *)torsh_mpi_argument(arguments, i) != 0;
}

/* The error may be missing in Fortran 2008, where it is optional: then none is known. */
int torsh_mpi_error(const struct mpi_arguments *arguments, uintptr_t result)
{
	const int *error;

	if (!torsh_mpi_is_fortran(arguments->form))
		return (int)result;
	error = (const int *)arguments->at[arguments->n];
	return error ? *error : 0;
}

/* ---- statuses -------------------------------------------------------------------------------- */

struct mpi_received torsh_mpi_status(const void *status)
{
	const uint8_t *bytes = status;
	struct mpi_received received = {.has_bytes = true};
	uint32_t low, high;
	int64_t bytes_of_standard;

	memcpy(&received.source, bytes + torsh_mpi.status_source, sizeof(int));
	memcpy(&received.tag, bytes + torsh_mpi.status_tag, sizeof(int));
	if (torsh_mpi.abi == MPI_ABI_STANDARD) {
		received.has_bytes =
			!own.Get_elements_c(status, STANDARD_BYTE, &bytes_of_standard) &&
			bytes_of_standard >= 0;
		received.bytes = received.has_bytes ? (uint64_t)bytes_of_standard : 0;
		return received;
	}
	memcpy(&low, bytes + torsh_mpi.status_count, sizeof(low));
	memcpy(&high, bytes + torsh_mpi.status_count + 4, sizeof(high));
	/* MPICH's lowest bit there says whether the message was cancelled. */
	received.bytes = low | (uint64_t)(torsh_mpi.abi == MPI_ABI_MPICH ? high >> 1 : high) << 32;
	return received;
}

/* ---- functions of the library ---------------------------------------------------------------- */

bool torsh_mpi_is_up(void)
{
	int is_initialized = 0, is_finalized = 1;

	return !own.Initialized(&is_initialized) && is_initialized &&
	       !own.Finalized(&is_finalized) && !is_finalized;
}

bool torsh_mpi_describe(uint64_t comm, uint32_t *rank, uint32_t *size)
{
	int is_inter = 1, own_rank = -1, n = 0;

	if (own.Comm_test_inter(comm, &is_inter) || is_inter || own.Comm_rank(comm, &own_rank) ||
	    own.Comm_size(comm, &n) || own_rank < 0 || n <= 0)
		return false;
	*rank = (uint32_t)own_rank;
	*size = (uint32_t)n;
	return true;
}

#define TRANSLATED 16u /* in one call */

static uint32_t translate(uint64_t group, uint64_t world, uint32_t first, uint32_t n, int *ranks)
{
	int numbers[TRANSLATED];

	for (uint32_t i = 0; i < n; i++)
		numbers[i] = (int)(first + i);
	if (own.Group_translate_ranks(group, (int)n, numbers, world, ranks))
		return 0;
	for (uint32_t i = 0; i < n; i++)
		ranks[i] = ranks[i] < 0 ? -1 : ranks[i];
	return n;
}

uint32_t torsh_mpi_world_ranks(uint64_t comm, uint32_t first, uint32_t n, int *ranks)
{
	uint64_t group = 0, world = 0;
	uint32_t done = 0;

	if (own.Comm_group(comm, &group))
		return 0;
	if (!own.Comm_group(torsh_mpi.world, &world)) {
		done = translate(group, world, first, n < TRANSLATED ? n : TRANSLATED, ranks);
		own.Group_free(&world);
	}
	own.Group_free(&group);
	return done;
}
