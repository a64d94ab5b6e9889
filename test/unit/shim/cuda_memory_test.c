/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The types of CUDA's calls in shim/cuda/cuda_memory.h, against CUDA's own headers; and the sizes
 * of arrays.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <setjmp.h>

#include <cmocka.h>

#if !__has_include(<cupti.h>)
int main(void)
{
	puts("there are no headers of CUDA (PyPI's wheels below build/venv, or CUDA_HOME)");
	return 77;
}
#else
#include <cuda.h>
#include <cuda_runtime_api.h>
#include <cupti.h>

#include "agent/wire/event.h"
#include "collectors/cuda/memory/cuda_array.h"
#include "shim/cuda/cuda_memory.h"
#include "shim/cuda/cupti.h"

#define SAME(ours, our_field, theirs, their_field)                                        \
	_Static_assert(offsetof(struct ours, our_field) == offsetof(theirs, their_field), \
		       #theirs "." #their_field);                                         \
	_Static_assert(sizeof(((struct ours *)0)->our_field) ==                           \
			       sizeof(((theirs *)0)->their_field),                        \
		       "size of " #their_field)

#define ALLOC(Theirs, out_field, bytes_field)              \
	SAME(cuda_alloc, out, Theirs##_params, out_field); \
	SAME(cuda_alloc, bytes, Theirs##_params, bytes_field)

ALLOC(cuMemAlloc_v2, dptr, bytesize);
ALLOC(cuMemAllocManaged, dptr, bytesize);
ALLOC(cuMemAllocHost_v2, pp, bytesize);
ALLOC(cuMemHostAlloc, pp, bytesize);
ALLOC(cudaMalloc_v3020, devPtr, size);
ALLOC(cudaMallocManaged_v6000, devPtr, size);
ALLOC(cudaMallocHost_v3020, ptr, size);
ALLOC(cudaHostAlloc_v3020, pHost, size);

#define ALLOC_ASYNC(Theirs, out_field, bytes_field) \
	ALLOC(Theirs, out_field, bytes_field);      \
	SAME(cuda_alloc, where, Theirs##_params, hStream)

ALLOC_ASYNC(cuMemAllocAsync, dptr, bytesize);
ALLOC_ASYNC(cuMemAllocAsync_ptsz, dptr, bytesize);
ALLOC_ASYNC(cudaMallocAsync_v11020, devPtr, size);
ALLOC_ASYNC(cudaMallocAsync_ptsz_v11020, devPtr, size);
ALLOC(cuMemAllocFromPoolAsync, dptr, bytesize);
SAME(cuda_alloc, where, cuMemAllocFromPoolAsync_params, pool);
SAME(cuda_alloc, stream, cuMemAllocFromPoolAsync_params, hStream);
ALLOC(cudaMallocFromPoolAsync_v11020, ptr, size);
SAME(cuda_alloc, where, cudaMallocFromPoolAsync_v11020_params, memPool);
SAME(cuda_alloc, stream, cudaMallocFromPoolAsync_v11020_params, stream);

#define PITCH(Theirs, out_field, pitch_field, height_field)          \
	SAME(cuda_alloc_pitch, out, Theirs##_params, out_field);     \
	SAME(cuda_alloc_pitch, pitch, Theirs##_params, pitch_field); \
	SAME(cuda_alloc_pitch, height, Theirs##_params, height_field)

PITCH(cuMemAllocPitch_v2, dptr, pPitch, Height);
PITCH(cudaMallocPitch_v3020, devPtr, pitch, height);
SAME(cuda_alloc_3d, out, cudaMalloc3D_v3020_params, pitchedDevPtr);
SAME(cuda_alloc_3d, width, cudaMalloc3D_v3020_params, extent.width);
SAME(cuda_alloc_3d, height, cudaMalloc3D_v3020_params, extent.height);
SAME(cuda_alloc_3d, depth, cudaMalloc3D_v3020_params, extent.depth);
SAME(cuda_pitched, address, struct cudaPitchedPtr, ptr);
SAME(cuda_pitched, pitch, struct cudaPitchedPtr, pitch);

#define NODE(ours, Theirs, graph_field)                  \
	SAME(ours, graph, Theirs##_params, graph_field); \
	SAME(ours, node, Theirs##_params, nodeParams)

NODE(cuda_graph_alloc, cuGraphAddMemAllocNode, hGraph);
NODE(cuda_graph_alloc, cudaGraphAddMemAllocNode_v11040, graph);
NODE(cuda_graph_node, cuGraphAddNode, hGraph);
NODE(cuda_graph_edged_node, cuGraphAddNode_v2, hGraph);
NODE(cuda_graph_edged_node, cudaGraphAddNode_v12030, graph);
SAME(cuda_graph_free, graph, cuGraphAddMemFreeNode_params, hGraph);
SAME(cuda_graph_free, address, cuGraphAddMemFreeNode_params, dptr);
SAME(cuda_graph_free, address, cudaGraphAddMemFreeNode_v11040_params, dptr);
SAME(cuda_node_alloc, properties.location, CUDA_MEM_ALLOC_NODE_PARAMS, poolProps.location);
SAME(cuda_node_alloc, bytes, CUDA_MEM_ALLOC_NODE_PARAMS, bytesize);
SAME(cuda_node_alloc, address, CUDA_MEM_ALLOC_NODE_PARAMS, dptr);
SAME(cuda_node_alloc, bytes, struct cudaMemAllocNodeParams, bytesize);
SAME(cuda_node_alloc, address, struct cudaMemAllocNodeParams, dptr);
SAME(cuda_node, type, CUgraphNodeParams, type);
SAME(cuda_node, alloc.bytes, CUgraphNodeParams, alloc.bytesize);
SAME(cuda_node, alloc.address, struct cudaGraphNodeParams, alloc.dptr);
SAME(cuda_node, freed, CUgraphNodeParams, free.dptr);
SAME(cuda_node, freed, struct cudaGraphNodeParams, free.dptr);
_Static_assert(CUDA_NODE_ALLOC == CU_GRAPH_NODE_TYPE_MEM_ALLOC, "a node that gets memory");
_Static_assert(CUDA_NODE_FREE == CU_GRAPH_NODE_TYPE_MEM_FREE, "a node that frees it");

#define INSTANTIATE(Theirs, out_field, graph_field, flags_field)           \
	SAME(cuda_graph_instantiate, out, Theirs##_params, out_field);     \
	SAME(cuda_graph_instantiate, graph, Theirs##_params, graph_field); \
	SAME(cuda_graph_instantiate, flags, Theirs##_params, flags_field)

INSTANTIATE(cuGraphInstantiateWithFlags, phGraphExec, hGraph, flags);
INSTANTIATE(cuGraphInstantiateWithParams, phGraphExec, hGraph, instantiateParams);
INSTANTIATE(cudaGraphInstantiate_v12000, pGraphExec, graph, flags);
INSTANTIATE(cudaGraphInstantiateWithFlags_v11040, pGraphExec, graph, flags);
INSTANTIATE(cudaGraphInstantiateWithParams_v12000, pGraphExec, graph, instantiateParams);
_Static_assert(offsetof(CUDA_GRAPH_INSTANTIATE_PARAMS, flags) == 0, "flags come first");
_Static_assert(offsetof(cudaGraphInstantiateParams, flags) == 0, "flags come first");
_Static_assert(GRAPH_FREES_AT_LAUNCH == CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH,
	       "the flag");
SAME(cuda_graph_launch, executable, cuGraphLaunch_params, hGraph);
SAME(cuda_graph_launch, executable, cudaGraphLaunch_v10000_params, graphExec);

#define EXTENT(Theirs, address_field, bytes_field)                  \
	SAME(cuda_extent, address, Theirs##_params, address_field); \
	SAME(cuda_extent, bytes, Theirs##_params, bytes_field)

EXTENT(cuMemHostRegister_v2, p, bytesize);
EXTENT(cudaHostRegister_v4000, ptr, size);
EXTENT(cuMemUnmap, ptr, size);

SAME(cuda_create, out, cuMemCreate_params, handle);
SAME(cuda_create, bytes, cuMemCreate_params, size);
SAME(cuda_create, properties, cuMemCreate_params, prop);
SAME(cuda_properties, location.type, CUmemAllocationProp, location.type);
SAME(cuda_properties, location.id, CUmemAllocationProp, location.id);
SAME(cuda_properties, location.type, CUmemPoolProps, location.type);
SAME(cuda_properties, location.id, CUmemPoolProps, location.id);
SAME(cuda_properties, location.id, struct cudaMemPoolProps, location.id);
SAME(cuda_map, address, cuMemMap_params, ptr);
SAME(cuda_map, bytes, cuMemMap_params, size);
SAME(cuda_map, handle, cuMemMap_params, handle);
SAME(cuda_alloc, out, cuMemRetainAllocationHandle_params, handle);
SAME(cuda_alloc, out, cuMemImportFromShareableHandle_params, handle);
SAME(cuda_alloc, out, cuIpcOpenMemHandle_v2_params, pdptr);
SAME(cuda_alloc, out, cudaIpcOpenMemHandle_v4010_params, devPtr);
SAME(cuda_alloc, out, cuMemPoolImportPointer_params, ptr_out);
SAME(cuda_alloc, out, cudaMemPoolImportPointer_v11020_params, ptr);
SAME(cuda_alloc, out, cuExternalMemoryGetMappedBuffer_params, devPtr);
SAME(cuda_alloc, out, cudaExternalMemoryGetMappedBuffer_v10000_params, devPtr);

#define FREE(Theirs, field) SAME(cuda_free, address, Theirs##_params, field)

FREE(cuMemFree_v2, dptr);
FREE(cuMemFreeHost, p);
FREE(cuMemHostUnregister, p);
FREE(cuMemRelease, handle);
FREE(cuArrayDestroy, hArray);
FREE(cuMipmappedArrayDestroy, hMipmappedArray);
FREE(cuIpcCloseMemHandle, dptr);
FREE(cudaFree_v3020, devPtr);
FREE(cudaFreeHost_v3020, ptr);
FREE(cudaHostUnregister_v4000, ptr);
FREE(cudaFreeArray_v3020, array);
FREE(cudaFreeMipmappedArray_v5000, mipmappedArray);
FREE(cudaIpcCloseMemHandle_v4010, devPtr);
FREE(cuMemFreeAsync, dptr);
SAME(cuda_free, stream, cuMemFreeAsync_params, hStream);
FREE(cudaFreeAsync_v11020, devPtr);
SAME(cuda_free, stream, cudaFreeAsync_v11020_params, hStream);

SAME(cuda_array, out, cuArrayCreate_v2_params, pHandle);
SAME(cuda_array, shape, cuArrayCreate_v2_params, pAllocateArray);
SAME(cuda_array, shape, cuArray3DCreate_v2_params, pAllocateArray);
SAME(cuda_array, n_levels, cuMipmappedArrayCreate_params, numMipmapLevels);
SAME(cuda_array_shape, height, CUDA_ARRAY_DESCRIPTOR, Height);
SAME(cuda_array_shape, format, CUDA_ARRAY_DESCRIPTOR, Format);
SAME(cuda_array_shape, n_channels, CUDA_ARRAY_DESCRIPTOR, NumChannels);
SAME(cuda_array_3d_shape, depth, CUDA_ARRAY3D_DESCRIPTOR, Depth);
SAME(cuda_array_3d_shape, format, CUDA_ARRAY3D_DESCRIPTOR, Format);
SAME(cuda_array_3d_shape, n_channels, CUDA_ARRAY3D_DESCRIPTOR, NumChannels);
SAME(cuda_array_3d_shape, flags, CUDA_ARRAY3D_DESCRIPTOR, Flags);
SAME(cuda_channels, bits[3], struct cudaChannelFormatDesc, w);
SAME(cuda_channels_array, channels, cudaMallocArray_v3020_params, desc);
SAME(cuda_channels_array, height, cudaMallocArray_v3020_params, height);
SAME(cuda_channels_array, flags, cudaMallocArray_v3020_params, flags);
SAME(cuda_channels_array_3d, depth, cudaMalloc3DArray_v3020_params, extent.depth);
SAME(cuda_channels_array_3d, words[0], cudaMalloc3DArray_v3020_params, flags);
SAME(cuda_channels_array_3d, words[0], cudaMallocMipmappedArray_v5000_params, numLevels);
SAME(cuda_channels_array_3d, words[1], cudaMallocMipmappedArray_v5000_params, flags);

SAME(cuda_pool, out, cuMemPoolCreate_params, pool);
SAME(cuda_pool, properties, cuMemPoolCreate_params, poolProps);
SAME(cuda_pool, properties, cudaMemPoolCreate_v11020_params, poolProps);
SAME(cuda_pool_of_device, out, cuDeviceGetDefaultMemPool_params, pool_out);
SAME(cuda_pool_of_device, device, cuDeviceGetDefaultMemPool_params, dev);
SAME(cuda_pool_of_device, device, cuDeviceGetMemPool_params, dev);
SAME(cuda_pool_of_device, device, cudaDeviceGetDefaultMemPool_v11020_params, device);
SAME(cuda_pool_of_device, device, cudaDeviceGetMemPool_v11020_params, device);
#if CUDA_VERSION >= 13000
SAME(cuda_pool_of_location, out, cuMemGetMemPool_params, pool);
SAME(cuda_pool_of_location, location, cuMemGetMemPool_params, location);
SAME(cuda_pool_of_location, type, cuMemGetMemPool_params, type);
SAME(cuda_pool_of_location, type, cuMemGetDefaultMemPool_params, type);
SAME(cuda_pool_of_location, location, cudaMemGetMemPool_v13000_params, location);
SAME(cuda_pool_of_location, type, cudaMemGetDefaultMemPool_v13000_params, type);
#endif
SAME(cuda_mem_get_info, free_bytes, cuMemGetInfo_v2_params, free);
SAME(cuda_mem_get_info, total_bytes, cuMemGetInfo_v2_params, total);
SAME(cuda_mem_get_info, total_bytes, cudaMemGetInfo_v3020_params, total);

SAME(cupti_call, parameters, CUpti_CallbackData, functionParams);
SAME(cupti_call, context, CUpti_CallbackData, context);
SAME(cupti_resource, context, CUpti_ResourceData, context);

static void numbers_are_those_of_the_headers(void **state)
{
	(void)state;
	assert_int_equal(CUDA_OUT_OF_MEMORY, CUDA_ERROR_OUT_OF_MEMORY);
	assert_int_equal(CUDA_OUT_OF_MEMORY, cudaErrorMemoryAllocation);
	assert_int_equal(CUDA_LOCATION_NONE, CU_MEM_LOCATION_TYPE_INVALID);
	assert_int_equal(CUDA_LOCATION_DEVICE, CU_MEM_LOCATION_TYPE_DEVICE);
	assert_int_equal(CUDA_TYPE_MANAGED, CU_MEM_ALLOCATION_TYPE_MANAGED);
	assert_int_equal(CUDA_LOCATION_DEVICE, cudaMemLocationTypeDevice);
	assert_int_equal(CUDA_ARRAY_IS_LAYERED, CUDA_ARRAY3D_LAYERED);
	assert_int_equal(CUDA_ARRAY_IS_SPARSE, CUDA_ARRAY3D_SPARSE);
	assert_int_equal(CUDA_ARRAY_IS_DEFERRED, CUDA_ARRAY3D_DEFERRED_MAPPING);
	assert_int_equal(CUDA_ARRAY_IS_LAYERED, cudaArrayLayered);
	assert_int_equal(CUDA_ARRAY_IS_SPARSE, cudaArraySparse);
	assert_int_equal(CUDA_ARRAY_IS_DEFERRED, cudaArrayDeferredMapping);
	assert_int_equal(CUPTI_DOMAIN_RESOURCE, CUPTI_CB_DOMAIN_RESOURCE);
	assert_int_equal(CUPTI_CONTEXT_ENDS, CUPTI_CBID_RESOURCE_CONTEXT_DESTROY_STARTING);
}

static uint64_t bytes_of_flat(CUarray_format format, unsigned n_channels, size_t width,
			      size_t height)
{
	CUDA_ARRAY_DESCRIPTOR shape = {
		.Width = width, .Height = height, .Format = format, .NumChannels = n_channels};
	CUarray handle;
	cuArrayCreate_v2_params parameters = {.pHandle = &handle, .pAllocateArray = &shape};

	return torsh_cuda_array_bytes(CUDA_ARRAY, &parameters);
}

static void arrays_are_as_large_as_their_texels(void **state)
{
	(void)state;
	assert_int_equal(bytes_of_flat(CU_AD_FORMAT_UNSIGNED_INT8, 4, 100, 50), 100 * 50 * 4);
	assert_int_equal(bytes_of_flat(CU_AD_FORMAT_SIGNED_INT16, 2, 100, 50), 100 * 50 * 4);
	assert_int_equal(bytes_of_flat(CU_AD_FORMAT_HALF, 1, 100, 50), 100 * 50 * 2);
	/* one dimension */
	assert_int_equal(bytes_of_flat(CU_AD_FORMAT_FLOAT, 4, 100, 0), 100 * 16);
	assert_int_equal(bytes_of_flat(CU_AD_FORMAT_UNORM_INT16X4, 4, 100, 50), 100 * 50 * 8);
	/* Blocks of four by four texels. */
	assert_int_equal(bytes_of_flat(CU_AD_FORMAT_BC1_UNORM, 4, 10, 4), 3 * 8);
	assert_int_equal(bytes_of_flat(CU_AD_FORMAT_BC7_UNORM, 4, 16, 5), 4 * 2 * 16);
	/* Video formats are not checked. */
	assert_int_equal(bytes_of_flat(CU_AD_FORMAT_NV12, 3, 100, 50), 0);
}

static void elements_are_of_one_size_or_of_none(void **state)
{
	(void)state;
	assert_int_equal(torsh_cuda_array_element_bytes(CU_AD_FORMAT_FLOAT, 4), 16);
	assert_int_equal(torsh_cuda_array_element_bytes(CU_AD_FORMAT_UNORM_INT16X4, 4), 8);
	assert_int_equal(torsh_cuda_array_element_bytes(CU_AD_FORMAT_BC1_UNORM, 4), 0);
	assert_int_equal(torsh_cuda_array_element_bytes(CU_AD_FORMAT_NV12, 3), 0);
	assert_int_equal(torsh_cuda_array_element_bytes(-1, 1), 0);
}

static uint64_t bytes_of_levels(unsigned flags, size_t depth, unsigned n_levels)
{
	CUDA_ARRAY3D_DESCRIPTOR shape = {.Width = 8,
					 .Height = 4,
					 .Depth = depth,
					 .Format = CU_AD_FORMAT_FLOAT,
					 .NumChannels = 1,
					 .Flags = flags};
	CUmipmappedArray handle;
	cuMipmappedArrayCreate_params parameters = {
		.pHandle = &handle, .pMipmappedArrayDesc = &shape, .numMipmapLevels = n_levels};

	return torsh_cuda_array_bytes(CUDA_ARRAY_MIPMAPPED, &parameters);
}

static void levels_halve_what_is_no_layer(void **state)
{
	(void)state;
	assert_int_equal(bytes_of_levels(0, 4, 1), 4 * 8 * 4 * 4);
	assert_int_equal(bytes_of_levels(0, 4, 4), 4 * (8 * 4 * 4 + 4 * 2 * 2 + 2 * 1 * 1 + 1));
	assert_int_equal(bytes_of_levels(CUDA_ARRAY3D_LAYERED, 6, 3),
			 4 * 6 * (8 * 4 + 4 * 2 + 2 * 1));
	assert_int_equal(bytes_of_levels(CUDA_ARRAY3D_SPARSE, 4, 1), 0);
	assert_int_equal(bytes_of_levels(CUDA_ARRAY3D_DEFERRED_MAPPING, 4, 1), 0);
	assert_int_equal(bytes_of_levels(0, 4, 1u << 31), 0);
}

static void the_runtimes_arrays_are_sized_by_the_bits_of_their_channels(void **state)
{
	struct cudaChannelFormatDesc channels = {
		.x = 16, .y = 16, .z = 0, .w = 0, .f = cudaChannelFormatKindFloat};
	cudaMallocArray_v3020_params flat = {.desc = &channels, .width = 30, .height = 20};
	cudaMalloc3DArray_v3020_params deep = {.desc = &channels, .extent = {30, 20, 10}};
	cudaMallocMipmappedArray_v5000_params levels = {
		.desc = &channels, .extent = {8, 4, 6}, .numLevels = 2, .flags = cudaArrayLayered};

	(void)state;
	assert_int_equal(torsh_cuda_array_bytes(CUDA_CHANNELS, &flat), 30 * 20 * 4);
	assert_int_equal(torsh_cuda_array_bytes(CUDA_CHANNELS_3D, &deep), 30 * 20 * 10 * 4);
	assert_int_equal(torsh_cuda_array_bytes(CUDA_CHANNELS_MIPMAPPED, &levels),
			 6 * (8 * 4 + 4 * 2) * 4);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(numbers_are_those_of_the_headers),
		cmocka_unit_test(arrays_are_as_large_as_their_texels),
		cmocka_unit_test(elements_are_of_one_size_or_of_none),
		cmocka_unit_test(levels_halve_what_is_no_layer),
		cmocka_unit_test(the_runtimes_arrays_are_sized_by_the_bits_of_their_channels),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
#endif
