/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The graph interface of the simulated cuDNN: descriptors store what the program sets; heuristics
 * offer the same engines for every graph, and a plan launches what its engine does for its graph.
 */
#include <stdlib.h>

#include "test/simcuda/blas/blas.h"
#include "test/simcuda/blas/object.h"
#include "test/simcuda/cudnn/descriptor.h"
#include "test/simcuda/engine/call.h"

/*
 * Engines of every graph, so that a benchmark has something to choose from; and the memory that
 * each wants.
 */
enum { N_ENGINES = 2, WORKSPACE_BYTES = 1 << 20, SHARED_BYTES = 1 << 14 };

static struct sim_api unknown_attribute = {
	.name = "cudnnBackendGetAttribute of an unknown attribute",
	.unsupported = CUDNN_STATUS_NOT_SUPPORTED};

static struct descriptor *descriptor_of(cudnnBackendDescriptor_t descriptor)
{
	return (struct descriptor *)descriptor;
}

cudnnStatus_t do_cudnnBackendCreateDescriptor(cudnnBackendDescriptorType_t descriptorType,
					      cudnnBackendDescriptor_t *descriptor)
{
	*descriptor = (cudnnBackendDescriptor_t)cudnn_descriptor_create(descriptorType);
	return *descriptor ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_ALLOC_FAILED;
}

cudnnStatus_t do_cudnnBackendDestroyDescriptor(cudnnBackendDescriptor_t descriptor)
{
	cudnn_descriptor_release(descriptor_of(descriptor));
	return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t do_cudnnBackendSetAttribute(cudnnBackendDescriptor_t descriptor,
					  cudnnBackendAttributeName_t attributeName,
					  cudnnBackendAttributeType_t attributeType,
					  int64_t elementCount, const void *arrayOfElements)
{
	/* The values of a descriptor are fixed when it is final. */
	if (!descriptor || descriptor_of(descriptor)->is_final)
		return CUDNN_STATUS_BAD_PARAM;
	return cudnn_descriptor_set(descriptor_of(descriptor), attributeName, attributeType,
				    elementCount, arrayOfElements);
}

static cudnnStatus_t finalize_plan(struct descriptor *plan)
{
	struct descriptor *config =
		cudnn_descriptor_inner(plan, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG);
	struct descriptor *engine =
		config ? cudnn_descriptor_inner(config, CUDNN_ATTR_ENGINECFG_ENGINE) : NULL;
	struct descriptor *graph =
		engine ? cudnn_descriptor_inner(engine, CUDNN_ATTR_ENGINE_OPERATION_GRAPH) : NULL;
	const struct attribute *index =
		engine ? cudnn_descriptor_find(engine, CUDNN_ATTR_ENGINE_GLOBAL_INDEX) : NULL;

	if (!graph || !index || index->n != 1)
		return CUDNN_STATUS_BAD_PARAM;
	plan->kernels = calloc(1, sizeof(*plan->kernels));
	if (!plan->kernels)
		return CUDNN_STATUS_ALLOC_FAILED;
	return cudnn_kernels_of_graph(graph, *(const int64_t *)index->values, plan->kernels);
}

static cudnnStatus_t finalize_engine(const struct descriptor *engine)
{
	const struct attribute *index =
		cudnn_descriptor_find(engine, CUDNN_ATTR_ENGINE_GLOBAL_INDEX);

	if (!index || index->n != 1)
		return CUDNN_STATUS_BAD_PARAM;
	return *(const int64_t *)index->values < N_ENGINES ? CUDNN_STATUS_SUCCESS
							   : CUDNN_STATUS_NOT_SUPPORTED;
}

cudnnStatus_t do_cudnnBackendFinalize(cudnnBackendDescriptor_t descriptor)
{
	struct descriptor *it = descriptor_of(descriptor);
	cudnnStatus_t status = CUDNN_STATUS_SUCCESS;

	if (!it || it->is_final)
		return CUDNN_STATUS_BAD_PARAM;
	if (it->type == CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR)
		status = finalize_plan(it);
	else if (it->type == CUDNN_BACKEND_ENGINE_DESCRIPTOR)
		status = finalize_engine(it);
	it->is_final = !status;
	return status;
}

/* An engine's configuration for the graph, into one that the program made. */
static cudnnStatus_t offer(struct descriptor *config, struct descriptor *graph, int64_t index)
{
	struct descriptor *engine = cudnn_descriptor_create(CUDNN_BACKEND_ENGINE_DESCRIPTOR);
	cudnnStatus_t status = CUDNN_STATUS_ALLOC_FAILED;

	if (!config || config->type != CUDNN_BACKEND_ENGINECFG_DESCRIPTOR)
		status = CUDNN_STATUS_BAD_PARAM;
	else if (engine)
		status = cudnn_descriptor_set(engine, CUDNN_ATTR_ENGINE_OPERATION_GRAPH,
					      CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &graph);
	if (!status)
		status = cudnn_descriptor_set(engine, CUDNN_ATTR_ENGINE_GLOBAL_INDEX,
					      CUDNN_TYPE_INT64, 1, &index);
	if (!status)
		status = cudnn_descriptor_set(config, CUDNN_ATTR_ENGINECFG_ENGINE,
					      CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &engine);
	if (!status)
		config->is_final = engine->is_final = true;
	cudnn_descriptor_release(engine);
	return status;
}

static cudnnStatus_t get_results(const struct descriptor *heuristics, int64_t room, int64_t *n_out,
				 void *values)
{
	struct descriptor *graph =
		cudnn_descriptor_inner(heuristics, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH);
	cudnnStatus_t status = CUDNN_STATUS_SUCCESS;
	struct kernels kernels;
	int64_t n = 0;

	if (!graph)
		return CUDNN_STATUS_BAD_PARAM;
	if (!cudnn_kernels_of_graph(graph, 0, &kernels))
		n = N_ENGINES;
	for (int64_t i = 0; values && i < n && i < room && !status; i++)
		status = offer(((struct descriptor **)values)[i], graph, i);
	if (n_out)
		*n_out = values && n > room ? room : n;
	return status;
}

/* One number, of the type that the program requests: CUDNN_TYPE_INT64, or _INT32. */
static cudnnStatus_t get_number(int64_t number, cudnnBackendAttributeType_t type, int64_t room,
				int64_t *n_out, void *values)
{
	if (n_out)
		*n_out = 1;
	if (values && room > 0 && type == CUDNN_TYPE_INT64)
		*(int64_t *)values = number;
	else if (values && room > 0)
		*(int32_t *)values = (int32_t)number;
	return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t do_cudnnBackendGetAttribute(cudnnBackendDescriptor_t const descriptor,
					  cudnnBackendAttributeName_t attributeName,
					  cudnnBackendAttributeType_t attributeType,
					  int64_t requestedElementCount, int64_t *elementCount,
					  void *arrayOfElements)
{
	const struct descriptor *it = descriptor_of(descriptor);
	const struct attribute *attribute;

	if (!it || !it->is_final)
		return CUDNN_STATUS_BAD_PARAM;
	attribute = cudnn_descriptor_find(it, attributeName);
	if (attribute)
		return cudnn_attribute_get(attribute, attributeType, requestedElementCount,
					   elementCount, arrayOfElements);
	switch (attributeName) {
	case CUDNN_ATTR_ENGINEHEUR_RESULTS:
		return get_results(it, requestedElementCount, elementCount, arrayOfElements);
	case CUDNN_ATTR_OPERATIONGRAPH_ENGINE_GLOBAL_COUNT:
		return get_number(N_ENGINES, attributeType, requestedElementCount, elementCount,
				  arrayOfElements);
	case CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE:
#if CUDNN_VERSION >= 90200
	case CUDNN_ATTR_ENGINECFG_WORKSPACE_SIZE:
#endif
		return get_number(WORKSPACE_BYTES, attributeType, requestedElementCount,
				  elementCount, arrayOfElements);
#if CUDNN_VERSION >= 90200
	case CUDNN_ATTR_ENGINECFG_SHARED_MEMORY_USED:
		return get_number(SHARED_BYTES, attributeType, requestedElementCount, elementCount,
				  arrayOfElements);
#endif
	case CUDNN_ATTR_ENGINE_NUMERICAL_NOTE:
	case CUDNN_ATTR_ENGINE_BEHAVIOR_NOTE:
	case CUDNN_ATTR_ENGINE_KNOB_INFO:
	case CUDNN_ATTR_ENGINE_LAYOUT_INFO:
	case CUDNN_ATTR_ENGINECFG_KNOB_CHOICES:
	case CUDNN_ATTR_ENGINECFG_INTERMEDIATE_INFO:
		/* The engines have none of these. */
		if (elementCount)
			*elementCount = 0;
		return CUDNN_STATUS_SUCCESS;
	default:
		return (cudnnStatus_t)sim_call_unsupported(&unknown_attribute);
	}
}

cudnnStatus_t do_cudnnBackendExecute(cudnnHandle_t handle, cudnnBackendDescriptor_t executionPlan,
				     cudnnBackendDescriptor_t variantPack)
{
	const struct descriptor *plan = descriptor_of(executionPlan),
				*pack = descriptor_of(variantPack);

	if (!handle || !plan || !plan->is_final || !plan->kernels || !pack || !pack->is_final)
		return CUDNN_STATUS_BAD_PARAM;
	for (unsigned i = 0; i < plan->kernels->n; i++)
		if (blas_launch(plan->kernels->of[i].name, plan->kernels->of[i].flops,
				blas_object_stream(handle)))
			return CUDNN_STATUS_EXECUTION_FAILED;
	return CUDNN_STATUS_SUCCESS;
}
