/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * probe: what the process is like: whether MPI's functions are found by name, its threads and
 * descriptors; compiled WITH_MPI also a result and errno, WITH_ERRORS what failed calls return.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#ifdef WITH_MPI
#include <mpi.h>
#endif

static int count(const char *path)
{
	DIR *folder = opendir(path);
	int n = 0;

	while (readdir(folder))
		n++;
	closedir(folder);
	return n;
}

/* Of the numbers that programs get: the agent's are far above. */
static int count_descriptors(void)
{
	DIR *folder = opendir("/proc/self/fd");
	struct dirent *entry;
	int n = 0, fd;

	while ((entry = readdir(folder)))
		n += sscanf(entry->d_name, "%d", &fd) == 1 && fd < 512;
	closedir(folder);
	return n;
}

int main(int argc, char **argv)
{
	static const char *const names[] = {"MPI_Init", "PMPI_Init", "MPI_Allreduce",
					    "mpi_allreduce_", "MPI_ALLREDUCE"};

	for (unsigned i = 0; i < sizeof(names) / sizeof(*names); i++)
		printf("%s %s\n", names[i],
		       dlsym(RTLD_DEFAULT, names[i]) ? "is there" : "isn't there");
#ifdef WITH_MPI
	double in = 1, out = 0;
	MPI_Request request;
#ifdef WITH_ERRORS
	int result;
#endif

	MPI_Init(&argc, &argv);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
#ifdef WITH_ERRORS
	result = MPI_Allreduce(&in, &out, 1, MPI_DATATYPE_NULL, MPI_SUM, MPI_COMM_WORLD);
	MPI_Error_class(result, &result);
	printf("a type that isn't one: error %d\n", result);
	result = MPI_Isend(&in, 1, MPI_DOUBLE, 77, 1, MPI_COMM_WORLD, &request);
	MPI_Error_class(result, &result);
	printf("a rank that isn't one: error %d\n", result);
	result = MPI_Allreduce(&in, &out, -1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
	MPI_Error_class(result, &result);
	printf("a count that isn't one: error %d\n", result);
#endif
	MPI_Allreduce(&in, &out, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
	printf("result %g\n", out);
	errno = 77;
	MPI_Isend(&in, 1, MPI_DOUBLE, MPI_PROC_NULL, 1, MPI_COMM_WORLD, &request);
	MPI_Wait(&request, MPI_STATUS_IGNORE);
	printf("errno %d\n", errno);
#else
	(void)argc;
	(void)argv;
#endif
	printf("threads %d, descriptors %d\n", count("/proc/self/task") - 2, count_descriptors());
#ifdef WITH_MPI
	MPI_Finalize();
#endif
	return 3;
}
