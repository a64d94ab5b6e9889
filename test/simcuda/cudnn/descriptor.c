/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Descriptors of the simulated cuDNN's graph interface. */
#include "test/simcuda/cudnn/descriptor.h"

#include <stdlib.h>
#include <string.h>

/* Size of one value; 0 for an unknown type. */
static size_t value_bytes(cudnnBackendAttributeType_t type)
{
	switch (type) {
	case CUDNN_TYPE_HANDLE:
	case CUDNN_TYPE_VOID_PTR:
	case CUDNN_TYPE_BACKEND_DESCRIPTOR:
		return sizeof(void *);
	case CUDNN_TYPE_INT64:
	case CUDNN_TYPE_DOUBLE:
		return 8;
	case CUDNN_TYPE_BOOLEAN:
	case CUDNN_TYPE_CHAR:
		return 1;
	case CUDNN_TYPE_FRACTION:
		return sizeof(cudnnFraction_t);
	default:
		/* The other types are enumerations, floats and ints. */
		return sizeof(int32_t);
	}
}

struct descriptor *cudnn_descriptor_create(cudnnBackendDescriptorType_t type)
{
	struct descriptor *descriptor = calloc(1, sizeof(*descriptor));

	if (descriptor) {
		descriptor->type = type;
		descriptor->n_references = 1;
	}
	return descriptor;
}

static void release_values(struct attribute *attribute)
{
	struct descriptor **inner = attribute->values;

	if (attribute->type == CUDNN_TYPE_BACKEND_DESCRIPTOR)
		for (int64_t i = 0; i < attribute->n; i++)
			cudnn_descriptor_release(inner[i]);
	free(attribute->values);
}

static void release_attributes(struct descriptor *descriptor)
{
	struct attribute *next;

	for (struct attribute *attribute = descriptor->attributes; attribute; attribute = next) {
		next = attribute->next;
		release_values(attribute);
		free(attribute);
	}
	descriptor->attributes = NULL;
}

void cudnn_descriptor_release(struct descriptor *descriptor)
{
	if (!descriptor || --descriptor->n_references)
		return;
	release_attributes(descriptor);
	free(descriptor->kernels);
	free(descriptor);
}

static struct attribute *find(const struct descriptor *descriptor, cudnnBackendAttributeName_t name)
{
	struct attribute *attribute = descriptor->attributes;

	while (attribute && attribute->name != name)
		attribute = attribute->next;
	return attribute;
}

const struct attribute *cudnn_descriptor_find(const struct descriptor *descriptor,
					      cudnnBackendAttributeName_t name)
{
	return find(descriptor, name);
}

/* The attribute, made where there is none; NULL without memory. */
static struct attribute *find_or_add(struct descriptor *descriptor,
				     cudnnBackendAttributeName_t name)
{
	struct attribute *attribute = find(descriptor, name);

	if (attribute)
		return attribute;
	attribute = calloc(1, sizeof(*attribute));
	if (attribute) {
		attribute->name = name;
		attribute->next = descriptor->attributes;
		descriptor->attributes = attribute;
	}
	return attribute;
}

cudnnStatus_t cudnn_descriptor_set(struct descriptor *descriptor, cudnnBackendAttributeName_t name,
				   cudnnBackendAttributeType_t type, int64_t n, const void *values)
{
	size_t bytes = (size_t)n * value_bytes(type);
	struct descriptor *const *inner = values;
	struct attribute *attribute;
	void *copy;

	if (n < 0 || (n && !values))
		return CUDNN_STATUS_BAD_PARAM;
	copy = malloc(bytes + 1);
	attribute = copy ? find_or_add(descriptor, name) : NULL;
	if (!attribute) {
		free(copy);
		return CUDNN_STATUS_ALLOC_FAILED;
	}
	if (n)
		memcpy(copy, values, bytes);
	if (type == CUDNN_TYPE_BACKEND_DESCRIPTOR)
		for (int64_t i = 0; i < n; i++)
			if (inner[i])
				inner[i]->n_references++;
	release_values(attribute);
	attribute->type = type;
	attribute->n = n;
	attribute->values = copy;
	return CUDNN_STATUS_SUCCESS;
}

struct descriptor *cudnn_descriptor_inner(const struct descriptor *descriptor,
					  cudnnBackendAttributeName_t name)
{
	const struct attribute *attribute = descriptor ? find(descriptor, name) : NULL;

	return attribute && attribute->type == CUDNN_TYPE_BACKEND_DESCRIPTOR && attribute->n
		       ? *(struct descriptor **)attribute->values
		       : NULL;
}

cudnnStatus_t cudnn_descriptor_copy(struct descriptor *to, const struct descriptor *from)
{
	cudnnStatus_t status = CUDNN_STATUS_SUCCESS;

	if (!to || to->type != from->type)
		return CUDNN_STATUS_BAD_PARAM;
	release_attributes(to);
	for (const struct attribute *each = from->attributes; each && !status; each = each->next)
		status = cudnn_descriptor_set(to, each->name, each->type, each->n, each->values);
	to->is_final = true;
	return status;
}

cudnnStatus_t cudnn_attribute_get(const struct attribute *attribute,
				  cudnnBackendAttributeType_t type, int64_t room, int64_t *n_out,
				  void *values)
{
	int64_t n = attribute->n < room ? attribute->n : room;
	cudnnStatus_t status = CUDNN_STATUS_SUCCESS;

	if (attribute->type != type)
		return CUDNN_STATUS_BAD_PARAM;
	if (n_out)
		*n_out = attribute->n;
	if (!values)
		return CUDNN_STATUS_SUCCESS;
	if (type != CUDNN_TYPE_BACKEND_DESCRIPTOR) {
		memcpy(values, attribute->values, (size_t)n * value_bytes(type));
		return CUDNN_STATUS_SUCCESS;
	}
	/* The program made descriptors, which become what these are. */
	for (int64_t i = 0; i < n && !status; i++)
		status = cudnn_descriptor_copy(((struct descriptor **)values)[i],
					       ((struct descriptor **)attribute->values)[i]);
	return status;
}
