/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "collectors/cuda/memory/cuda_array.h"

#include <stdbool.h>

/* An array's format: texels of one size, or blocks of 4 by 4 texels. */
struct shape {
	uint64_t width, height, depth;
	uint32_t texel_bytes, block; /* block: the texels along its side */
	unsigned n_levels, flags;
};

/* CUarray_format: bytes of a channel, of a texel, or of a block. */
static const struct {
	uint8_t channel_bytes, texel_bytes, block_bytes;
} formats[256] = {
	[0x01] = {.channel_bytes = 1}, /* UNSIGNED_INT8 */
	[0x02] = {.channel_bytes = 2},	       [0x03] = {.channel_bytes = 4},
	[0x08] = {.channel_bytes = 1}, /* SIGNED_INT8 */
	[0x09] = {.channel_bytes = 2},	       [0x0a] = {.channel_bytes = 4},
	[0x10] = {.channel_bytes = 2}, /* HALF */
	[0x20] = {.channel_bytes = 4}, /* FLOAT */
	[0x91 ... 0x92] = {.block_bytes = 8}, /* BC1 */
	[0x93 ... 0x96] = {.block_bytes = 16}, /* BC2, BC3 */
	[0x97 ... 0x98] = {.block_bytes = 8}, /* BC4 */
	[0x99 ... 0x9e] = {.block_bytes = 16}, /* BC5 to BC7 */
	[0xc0] = {.texel_bytes = 1}, /* UNORM_INT8X1 */
	[0xc1] = {.texel_bytes = 2},	       [0xc2] = {.texel_bytes = 4},
	[0xc3] = {.texel_bytes = 2}, /* UNORM_INT16X1 */
	[0xc4] = {.texel_bytes = 4},	       [0xc5] = {.texel_bytes = 8},
	[0xc6] = {.texel_bytes = 1}, /* SNORM_INT8X1 */
	[0xc7] = {.texel_bytes = 2},	       [0xc8] = {.texel_bytes = 4},
	[0xc9] = {.texel_bytes = 2}, /* SNORM_INT16X1 */
	[0xca] = {.texel_bytes = 4},	       [0xcb] = {.texel_bytes = 8},
};

#define BLOCK_SIDE 4u
#define LEVELS_MAX 64u
#define EXTENT_MAX (UINT64_C(1) << 20) /* of a side: larger than any device's */

static void set_format(struct shape *shape, int format, unsigned n_channels)
{
	uint32_t i = (uint32_t)format;

	shape->block = 1;
	if (i >= sizeof(formats) / sizeof(*formats))
		return;
	shape->texel_bytes = formats[i].channel_bytes * n_channels + formats[i].texel_bytes +
			     formats[i].block_bytes;
	if (formats[i].block_bytes)
		shape->block = BLOCK_SIDE;
}

static uint64_t blocks_along(uint64_t texels, uint32_t block)
{
	/* 0: an array of fewer dimensions lacks this side. */
	return texels ? (texels + block - 1) / block : 1;
}

static uint64_t bytes_of(const struct shape *shape)
{
	uint64_t width = shape->width, height = shape->height, depth = shape->depth, bytes = 0;

	if (shape->flags & (CUDA_ARRAY_IS_SPARSE | CUDA_ARRAY_IS_DEFERRED) ||
	    shape->n_levels > LEVELS_MAX || width > EXTENT_MAX || height > EXTENT_MAX ||
	    depth > EXTENT_MAX)
		return 0;
	for (unsigned level = 0; level < shape->n_levels; level++) {
		bytes += blocks_along(width, shape->block) * blocks_along(height, shape->block) *
			 blocks_along(depth, 1) * shape->texel_bytes;
		width = width > 1 ? width / 2 : width;
		height = height > 1 ? height / 2 : height;
		if (!(shape->flags & CUDA_ARRAY_IS_LAYERED))
			depth = depth > 1 ? depth / 2 : depth;
	}
	return bytes;
}

static uint64_t bytes_of_array(enum cuda_memory_action action, const struct cuda_array *array)
{
	const struct cuda_array_shape *flat = array->shape;
	const struct cuda_array_3d_shape *deep = array->shape;
	struct shape shape = {.n_levels = 1};

	if (!array->shape)
		return 0;
	if (action == CUDA_ARRAY) {
		shape.width = flat->width;
		shape.height = flat->height;
		set_format(&shape, flat->format, flat->n_channels);
		return bytes_of(&shape);
	}
	shape.width = deep->width;
	shape.height = deep->height;
	shape.depth = deep->depth;
	shape.flags = deep->flags;
	set_format(&shape, deep->format, deep->n_channels);
	if (action == CUDA_ARRAY_MIPMAPPED)
		shape.n_levels = array->n_levels;
	return bytes_of(&shape);
}

static uint32_t bytes_of_channels(const struct cuda_channels *channels)
{
	uint32_t n_bits = 0;

	for (int i = 0; i < 4; i++)
		n_bits += channels->bits[i] > 0 ? (uint32_t)channels->bits[i] : 0;
	return n_bits / 8;
}

static uint64_t bytes_of_flat(const struct cuda_channels_array *array)
{
	struct shape shape = {.width = array->width,
			      .height = array->height,
			      .block = 1,
			      .n_levels = 1,
			      .flags = array->flags};

	if (!array->channels)
		return 0;
	shape.texel_bytes = bytes_of_channels(array->channels);
	return bytes_of(&shape);
}

static uint64_t bytes_of_deep(enum cuda_memory_action action,
			      const struct cuda_channels_array_3d *array)
{
	bool is_mipmapped = action == CUDA_CHANNELS_MIPMAPPED;
	struct shape shape = {
		.width = array->width,
		.height = array->height,
		.depth = array->depth,
		.block = 1,
		.n_levels = is_mipmapped ? array->words[0] : 1,
		.flags = array->words[is_mipmapped],
	};

	if (!array->channels)
		return 0;
	shape.texel_bytes = bytes_of_channels(array->channels);
	return bytes_of(&shape);
}

uint64_t torsh_cuda_array_bytes(enum cuda_memory_action action, const void *parameters)
{
	switch (action) {
	case CUDA_ARRAY:
	case CUDA_ARRAY_3D:
	case CUDA_ARRAY_MIPMAPPED:
		return bytes_of_array(action, parameters);
	case CUDA_CHANNELS:
		return bytes_of_flat(parameters);
	case CUDA_CHANNELS_3D:
	case CUDA_CHANNELS_MIPMAPPED:
		return bytes_of_deep(action, parameters);
	default:
		return 0;
	}
}

uint32_t torsh_cuda_array_element_bytes(int format, unsigned n_channels)
{
	struct shape shape = {0};

	set_format(&shape, format, n_channels);
	return shape.block == 1 ? shape.texel_bytes : 0;
}
