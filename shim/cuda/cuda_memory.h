/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The parameters of CUDA's memory calls as CUPTI passes them to callbacks: generated_cuda_meta.h
 * and generated_cuda_runtime_api_meta.h, declared here so that the agent is built without them.
 * Calls with the same first parameters share a struct. test/unit/shim/cuda_memory_test.c compares
 * with the real headers where they are installed.
 */
#ifndef TORSH_SHIM_CUDA_CUDA_MEMORY_H
#define TORSH_SHIM_CUDA_CUDA_MEMORY_H

#include <stddef.h>
#include <stdint.h>

/* What a call does, and the struct of its parameters. */
enum cuda_memory_action {
	CUDA_ALLOC, /* cuda_alloc */
	CUDA_ALLOC_ASYNC, /* the same; where is the stream */
	CUDA_ALLOC_POOL, /* the same; where is the pool, then the stream */
	CUDA_ALLOC_PITCH, /* cuda_alloc_pitch */
	CUDA_ALLOC_3D, /* cuda_alloc_3d */
	CUDA_CREATE, /* cuda_create */
	CUDA_RETAIN, /* cuda_alloc, without bytes */
	CUDA_IMPORT, /* the same */
	CUDA_MAP, /* cuda_map */
	CUDA_REGISTER, /* cuda_extent */
	CUDA_ARRAY, /* cuda_array of a cuda_array_shape */
	CUDA_ARRAY_3D, /* cuda_array of a cuda_array_3d_shape */
	CUDA_ARRAY_MIPMAPPED, /* the same, with levels */
	CUDA_CHANNELS, /* cuda_channels_array */
	CUDA_CHANNELS_3D, /* cuda_channels_array_3d */
	CUDA_CHANNELS_MIPMAPPED, /* the same, with levels */
	CUDA_FREE, /* cuda_free */
	CUDA_FREE_ASYNC, /* the same, with its stream */
	CUDA_UNMAP, /* cuda_extent */
	CUDA_POOL_CREATE, /* cuda_pool */
	CUDA_POOL_OF_DEVICE, /* cuda_pool_of_device */
	CUDA_POOL_OF_LOCATION, /* cuda_pool_of_location */
	CUDA_MEM_GET_INFO, /* cuda_mem_get_info */
	CUDA_GRAPH_ALLOC, /* cuda_graph_alloc */
	CUDA_GRAPH_FREE, /* cuda_graph_free */
	CUDA_GRAPH_NODE, /* cuda_graph_node */
	CUDA_GRAPH_EDGED_NODE, /* cuda_graph_edged_node */
	CUDA_GRAPH_INSTANTIATE, /* cuda_graph_instantiate */
	CUDA_GRAPH_INSTANTIATE_WITH, /* the same, with a pointer to the flags */
	CUDA_GRAPH_LAUNCH, /* cuda_graph_launch */
	CUDA_CODE_LOAD, /* cuda_module */
	CUDA_CODE_UNLOAD, /* cuda_free of the handle */
};

struct cuda_alloc {
	uint64_t *out; /* an address or a handle */
	size_t bytes;
	uint64_t where, stream;
};

struct cuda_alloc_pitch {
	uint64_t *out;
	size_t *pitch;
	size_t width, height;
};

/* cudaPitchedPtr */
struct cuda_pitched {
	uint64_t address;
	size_t pitch, width, height;
};

struct cuda_alloc_3d {
	struct cuda_pitched *out;
	size_t width, height, depth;
};

/* CUmemLocation */
struct cuda_location {
	int type, id;
};

#define CUDA_OUT_OF_MEMORY 2 /* CUDA_ERROR_OUT_OF_MEMORY, and cudaErrorMemoryAllocation */

#define CUDA_LOCATION_NONE 0 /* CU_MEM_LOCATION_TYPE_NONE */
#define CUDA_LOCATION_DEVICE 1 /* CU_MEM_LOCATION_TYPE_DEVICE */

/* The beginnings of CUmemAllocationProp and CUmemPoolProps. */
struct cuda_properties {
	int type, handle_types;
	struct cuda_location location;
};

#define CUDA_TYPE_MANAGED 2 /* CU_MEM_ALLOCATION_TYPE_MANAGED */

struct cuda_create {
	uint64_t *out;
	size_t bytes;
	const struct cuda_properties *properties;
};

struct cuda_map {
	uint64_t address;
	size_t bytes, offset;
	uint64_t handle;
};

struct cuda_extent {
	uint64_t address;
	size_t bytes;
};

struct cuda_free {
	uint64_t address, stream;
};

/* CUDA_ARRAY_DESCRIPTOR */
struct cuda_array_shape {
	size_t width, height;
	int format;
	unsigned n_channels;
};

/* CUDA_ARRAY3D_DESCRIPTOR */
struct cuda_array_3d_shape {
	size_t width, height, depth;
	int format;
	unsigned n_channels, flags;
};

struct cuda_array {
	uint64_t *out;
	const void *shape;
	unsigned n_levels;
};

/* cudaChannelFormatDesc: bits of each channel */
struct cuda_channels {
	int bits[4], format;
};

struct cuda_channels_array {
	uint64_t *out;
	const struct cuda_channels *channels;
	size_t width, height;
	unsigned flags;
};

struct cuda_channels_array_3d {
	uint64_t *out;
	const struct cuda_channels *channels;
	size_t width, height, depth;
	unsigned words[2]; /* flags; of a mipmapped array its levels, and flags */
};

/* Flags of arrays, the driver's and the runtime's. */
#define CUDA_ARRAY_IS_LAYERED 1u
#define CUDA_ARRAY_IS_SPARSE 0x40u
#define CUDA_ARRAY_IS_DEFERRED 0x80u

struct cuda_pool {
	uint64_t *out;
	const struct cuda_properties *properties;
};

struct cuda_pool_of_device {
	uint64_t *out;
	int device;
};

struct cuda_pool_of_location {
	uint64_t *out;
	const struct cuda_location *location;
	int type; /* as of cuda_properties */
};

struct cuda_mem_get_info {
	size_t *free_bytes, *total_bytes;
};

/* CUDA_MEM_ALLOC_NODE_PARAMS */
struct cuda_node_alloc {
	struct cuda_properties properties;
	uint64_t rest_of_properties[9];
	const void *accesses;
	size_t n_accesses, bytes;
	uint64_t address; /* where the call puts it */
};

struct cuda_graph_alloc {
	void *out, *graph;
	const void *after;
	size_t n_after;
	const struct cuda_node_alloc *node;
};

struct cuda_graph_free {
	void *out, *graph;
	const void *after;
	size_t n_after;
	uint64_t address;
};

#define CUDA_NODE_ALLOC 10 /* CU_GRAPH_NODE_TYPE_MEM_ALLOC */
#define CUDA_NODE_FREE 11 /* CU_GRAPH_NODE_TYPE_MEM_FREE */

/* CUgraphNodeParams */
struct cuda_node {
	int type, reserved[3];
	union {
		struct cuda_node_alloc alloc;
		uint64_t freed;
	};
};

/* cuGraphAddNode, and its version with more data about dependencies. */
struct cuda_graph_node {
	void *out, *graph;
	const void *after;
	size_t n_after;
	const struct cuda_node *node;
};

struct cuda_graph_edged_node {
	void *out, *graph;
	const void *after, *edges;
	size_t n_after;
	const struct cuda_node *node;
};

struct cuda_graph_instantiate {
	uint64_t *out;
	void *graph;
	union {
		uint64_t flags;
		const uint64_t *with; /* begins with the flags */
	};
};

struct cuda_graph_launch {
	uint64_t executable;
};

/* A CUmodule or a CUlibrary. */
struct cuda_module {
	uint64_t *out;
};

#endif
