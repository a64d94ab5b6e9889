/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * A descriptor of cuDNN's graph interface: a type, and attributes by their names. Those that are
 * descriptors themselves live as long as what refers to them, whatever the program destroys.
 */
#ifndef SIMCUDA_CUDNN_DESCRIPTOR_H
#define SIMCUDA_CUDNN_DESCRIPTOR_H

#include <stdbool.h>

#include "cudnn_api.h"

enum { PLAN_MAX_KERNELS = 4, KERNEL_NAME_BYTES = 160 };

/* What an execution plan launches, in order. */
struct kernels {
	unsigned n;
	struct {
		char name[KERNEL_NAME_BYTES];
		double flops;
	} of[PLAN_MAX_KERNELS];
};

struct attribute {
	cudnnBackendAttributeName_t name;
	cudnnBackendAttributeType_t type;
	int64_t n;
	void *values;
	struct attribute *next;
};

struct descriptor {
	cudnnBackendDescriptorType_t type;
	bool is_final;
	_Atomic int n_references;
	struct attribute *attributes;
	struct kernels *kernels; /* of a plan that is final */
};

/* NULL without memory; the caller has the one reference. */
struct descriptor *cudnn_descriptor_create(cudnnBackendDescriptorType_t type);
void cudnn_descriptor_release(struct descriptor *descriptor);

/* The attribute, or NULL where it was not set. */
const struct attribute *cudnn_descriptor_find(const struct descriptor *descriptor,
					      cudnnBackendAttributeName_t name);

/*
 * Set it, in place of the previous values; values are copied. CUDNN_STATUS_BAD_PARAM for an unknown
 * type.
 */
cudnnStatus_t cudnn_descriptor_set(struct descriptor *descriptor, cudnnBackendAttributeName_t name,
				   cudnnBackendAttributeType_t type, int64_t n, const void *values);

/* The first descriptor that the attribute refers to, or NULL. */
struct descriptor *cudnn_descriptor_inner(const struct descriptor *descriptor,
					  cudnnBackendAttributeName_t name);

/* Make one what another is, final and with its attributes. */
cudnnStatus_t cudnn_descriptor_copy(struct descriptor *to, const struct descriptor *from);

/* Copy as many of the values as there is room for; n_out is how many there are. */
cudnnStatus_t cudnn_attribute_get(const struct attribute *attribute,
				  cudnnBackendAttributeType_t type, int64_t room, int64_t *n_out,
				  void *values);

/*
 * What an engine launches for a graph of operations. CUDNN_STATUS_NOT_SUPPORTED if the simulation
 * lacks an operation.
 */
cudnnStatus_t cudnn_kernels_of_graph(const struct descriptor *graph, int64_t engine,
				     struct kernels *kernels);

#endif
