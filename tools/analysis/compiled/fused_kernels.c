/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/analysis/compiled/fused_kernels.h"

#include <stdlib.h>
#include <string.h>

#include "tools/base/containers/array.h"
#include "tools/base/die.h"

/* What torch.compile left in a directory. */
struct cache {
	const char *path;
	struct inductor inductor;
};

struct fused_kernels {
	const struct prepass *prepass;
	bool is_off;
	struct cache *caches;
	size_t n, n_room;
};

bool torsh_is_fused_kernel(const char *symbol)
{
	return symbol && strncmp(symbol, "triton_", 7) == 0;
}

struct fused_flops torsh_fused_kernel_flops(const struct inductor_kernel *kernel)
{
	struct fused_flops flops = {
		.reason = "Inductor's cache has the operators of the kernel but no graph"};

	if (!kernel)
		flops.reason = "the kernel's code is not in the directory that Inductor's cache "
			       "was in, or there are different ones of this name";
	for (size_t i = 0; kernel && i < kernel->n_comments; i++) {
		struct fused_flops other = torsh_fused_flops_of(kernel->name, kernel->comments[i]);

		if (i && !flops.reason && !other.reason && flops.n != other.n)
			other.reason = "Inductor's cache has several kernels of this name";
		if (!i || (other.reason && !flops.reason))
			flops = other;
	}
	return flops;
}

struct fused_kernels *torsh_fused_kernels_create(const struct recording *recording,
						 const struct prepass *prepass)
{
	struct fused_kernels *kernels = torsh_need(calloc(1, sizeof(*kernels)));

	kernels->prepass = prepass;
	kernels->is_off = recording->without_flops;
	return kernels;
}

void torsh_fused_kernels_destroy(struct fused_kernels *kernels)
{
	for (size_t i = 0; i < kernels->n; i++)
		torsh_inductor_free(&kernels->caches[i].inductor);
	free(kernels->caches);
	free(kernels);
}

/* Returns the process's cache; NULL: its directory was not recorded. */
static const struct inductor *find_cache(struct fused_kernels *kernels,
					 const struct recorded_process *process)
{
	const char *path = torsh_process_attributes_find(
		&torsh_prepass_of(kernels->prepass, process)->facts, "inductor_cache");
	struct cache *cache;

	if (!path)
		return NULL;
	for (size_t i = 0; i < kernels->n; i++) {
		if (strcmp(kernels->caches[i].path, path) == 0)
			return &kernels->caches[i].inductor;
	}
	kernels->caches = torsh_array_reserve(kernels->caches, kernels->n, &kernels->n_room,
					      sizeof(*kernels->caches));
	cache = &kernels->caches[kernels->n++];
	cache->path = path;
	torsh_inductor_read(&cache->inductor, path);
	return &cache->inductor;
}

struct fused_flops torsh_fused_kernels_find(struct fused_kernels *kernels,
					    struct recorded_process *const *processes,
					    size_t n_processes, const char *symbol)
{
	struct fused_flops flops = {.reason = "the directory of Inductor's cache was not recorded"};
	bool is_found = false;

	if (kernels->is_off)
		return (struct fused_flops){
			.reason = "FLOPs were turned off when the recording was made"};
	for (size_t i = 0; i < n_processes; i++) {
		const struct inductor *inductor = find_cache(kernels, processes[i]);
		struct fused_flops other;

		if (!inductor)
			continue;
		other = torsh_fused_kernel_flops(torsh_inductor_find(inductor, symbol));
		if (is_found && !flops.reason && !other.reason && flops.n != other.n)
			other.reason = "processes have different kernels of this name";
		if (!is_found || (other.reason && !flops.reason))
			flops = other;
		is_found = true;
	}
	return flops;
}
