/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "collectors/cuda/driver/cuda_batches.h"

#include <stdbool.h>

#include "agent/wire/event.h"
#include "collectors/cuda/memory/cuda_array.h"

enum driver_memory torsh_cuda_memory_at(uint64_t address)
{
	uint32_t memory = DRIVER_HOST;

	/* An address that the driver doesn't recognise is host memory. */
	if (torsh_driver.cuPointerGetAttribute(&memory, DRIVER_POINTER_MEMORY_TYPE, address))
		return DRIVER_HOST;
	return memory == DRIVER_DEVICE ? DRIVER_DEVICE : DRIVER_HOST;
}

static enum driver_memory memory_of_operand(const struct driver_operand *operand)
{
	return operand->type == DRIVER_OPERAND_ARRAY ? DRIVER_ARRAY
						     : torsh_cuda_memory_at(operand->address);
}

/* 0: a format without a fixed element size. Not inlined: only arrays need its stack space. */
static __attribute__((noinline)) uint64_t bytes_of_element(const struct driver_memcpy_3d_copy *copy)
{
	const struct driver_operand *of =
		copy->from.type == DRIVER_OPERAND_ARRAY ? &copy->from : &copy->to;
	struct cuda_array_3d_shape shape;

	if (of->type != DRIVER_OPERAND_ARRAY)
		return 1;
	if (!torsh_driver.cuArray3DGetDescriptor_v2 ||
	    torsh_driver.cuArray3DGetDescriptor_v2(&shape, (void *)of->array))
		return 0;
	return torsh_cuda_array_element_bytes(shape.format, shape.n_channels);
}

static uint64_t bytes_of_item(const struct driver_batch *batch, size_t i)
{
	const struct driver_memcpy_3d_copy *copy = batch->copies_3d ? &batch->copies_3d[i] : NULL;

	if (copy)
		return copy->width * copy->height * copy->depth * bytes_of_element(copy);
	return batch->decompressions ? batch->decompressions[i].to_bytes : batch->sizes[i];
}

static uint32_t direction_of_item(const struct driver_batch *batch, size_t i)
{
	if (batch->copies_3d)
		return torsh_driver_direction(memory_of_operand(&batch->copies_3d[i].from),
					      memory_of_operand(&batch->copies_3d[i].to));
	return torsh_driver_direction(torsh_cuda_memory_at(batch->from[i]),
				      torsh_cuda_memory_at(batch->to[i]));
}

void torsh_cuda_describe_batch(struct driver_work *work)
{
	const struct driver_batch *batch = work->batch;
	bool is_copy = work->direction == COPY_UNKNOWN;

	for (size_t i = 0; i < batch->n; i++) {
		uint32_t direction = is_copy ? direction_of_item(batch, i) : work->direction;

		work->bytes += bytes_of_item(batch, i);
		work->direction = i == 0 || work->direction == direction ? direction : COPY_UNKNOWN;
	}
	work->batch = NULL;
}
