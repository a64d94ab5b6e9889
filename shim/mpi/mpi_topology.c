/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Neighbors of this process in the topology of a communicator. */
#include "shim/loader/objects.h"
#include "shim/mpi/mpi.h"

static enum mpi_abi abi;
static int no_process;
static struct {
	int (*Topo_test)(uintptr_t, int *);
	int (*Cartdim_get)(uintptr_t, int *);
	int (*Cart_shift)(uintptr_t, int, int, int *, int *);
	int (*Comm_rank)(uintptr_t, int *);
	int (*Graph_neighbors_count)(uintptr_t, int, int *);
	int (*Dist_graph_neighbors_count)(uintptr_t, int *, int *, int *);
} own;

void torsh_mpi_topology_find(const struct mpi_library *library)
{
	abi = library->abi;
	no_process = library->no_process;
#define FIND(name) *(void **)&own.name = torsh_objects_find("PMPI_" #name)
	FIND(Topo_test);
	FIND(Cartdim_get);
	FIND(Cart_shift);
	FIND(Comm_rank);
	FIND(Graph_neighbors_count);
	FIND(Dist_graph_neighbors_count);
#undef FIND
}

/* What MPI_Topo_test stores. */
struct topologies {
	int grid, graph, dist_graph;
};

static struct topologies get_topologies(void)
{
	switch (abi) {
	case MPI_ABI_OPEN_MPI:
		return (struct topologies){1, 2, 3};
	case MPI_ABI_MPICH:
		return (struct topologies){2, 1, 3};
	default:
		return (struct topologies){211, 212, 213};
	}
}

/* Of each dimension the one below and the one above, in this order. */
static bool grid_neighbors(uint64_t comm, struct mpi_neighbors *neighbors)
{
	int n, below, above;

	if (!own.Cartdim_get || !own.Cart_shift || own.Cartdim_get(comm, &n) || n < 0 ||
	    (uint32_t)n > MPI_NEIGHBORS_KNOWN / 2)
		return false;
	for (int i = 0; i < n; i++) {
		if (own.Cart_shift(comm, i, 1, &below, &above))
			return false;
		if (below == no_process)
			neighbors->missing |= UINT64_C(1) << (2 * i);
		if (above == no_process)
			neighbors->missing |= UINT64_C(1) << (2 * i + 1);
	}
	neighbors->n_in = neighbors->n_out = 2 * (uint32_t)n;
	return true;
}

bool torsh_mpi_neighbors(uint64_t comm, struct mpi_neighbors *neighbors)
{
	const struct topologies topologies = get_topologies();
	int kind, rank, n, n_out, is_weighted;

	*neighbors = (struct mpi_neighbors){0};
	if (!own.Topo_test || own.Topo_test(comm, &kind))
		return false;
	if (kind == topologies.grid)
		return grid_neighbors(comm, neighbors);
	if (kind == topologies.graph && own.Graph_neighbors_count && own.Comm_rank &&
	    !own.Comm_rank(comm, &rank) && !own.Graph_neighbors_count(comm, rank, &n) && n >= 0) {
		neighbors->n_in = neighbors->n_out = (uint32_t)n;
		return true;
	}
	if (kind != topologies.dist_graph || !own.Dist_graph_neighbors_count ||
	    own.Dist_graph_neighbors_count(comm, &n, &n_out, &is_weighted) || n < 0 || n_out < 0)
		return false;
	neighbors->n_in = (uint32_t)n;
	neighbors->n_out = (uint32_t)n_out;
	return true;
}
