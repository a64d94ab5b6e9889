/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/device/owners/device_owners.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/base/containers/array.h"
#include "tools/base/die.h"
#include "tools/device/owners/listed_users.h"
#include "tools/device/owners/driver_figure.h"
#include "tools/device/owners/owners_pass.h"
#include "tools/device/owners/stack_evidence.h"
#include "tools/device/owners/tensor_lives.h"
#include "tools/symbols/cuda_frames.h"

#define TENSOR_ON_CUDA 1u
#define NAME_BYTES 1024

static bool is_same(const char *a, const char *b)
{
	return a == b || (a && b && strcmp(a, b) == 0);
}

static void put(struct device_owners *owners, const struct device_owner *owner)
{
	struct device_owner *found;
	size_t i = 0;

	while (i < owners->n && !(owners->items[i].kind == owner->kind &&
				  is_same(owners->items[i].name, owner->name) &&
				  owners->items[i].reason == owner->reason))
		i++;
	if (i == owners->n) {
		owners->items = torsh_array_reserve(owners->items, owners->n, &owners->n_room,
						    sizeof(*owners->items));
		owners->items[owners->n] = (struct device_owner){
			.kind = owner->kind,
			.name = owner->name ? torsh_need_text("%s", owner->name) : NULL,
			.reason = owner->reason};
		owners->n++;
	}
	found = &owners->items[i];
	found->bytes += owner->bytes;
	found->n += owner->n;
}

void torsh_device_owners_put(struct device_owners *owners, enum owner_kind kind, const char *name,
			     int64_t bytes, uint64_t n)
{
	if (bytes)
		put(owners, &(struct device_owner){
				    .kind = kind, .name = (char *)name, .bytes = bytes, .n = n});
}

/* ---- tensors --------------------------------------------------------------------------------- */

/* Whether a block stands for a tensor: of an allocator that reports none, in an operator. */
static bool is_tensor(const struct owners_request *request, const struct device_block *block)
{
	return block->kind == BLOCK_DEVICE &&
	       block->origin.operator&& !request->process->places[request->place]
		       .has_framework && !torsh_stack_evidence(request->process->process,
							       block->origin.stack,
							       request->symbols, false)
		       .library;
}

static void add_blocks(struct tensor_lives *lives, const struct owners_pass *pass)
{
	const struct device_blocks *blocks = &pass->revisit.blocks;

	for (size_t i = 0; i < blocks->n_blocks; i++) {
		const struct device_block *block = &blocks->blocks[i];

		if (block->is_alive && block->scope == pass->request->place &&
		    is_tensor(pass->request, block))
			torsh_tensor_lives_add(
				lives, &(struct tensor_of_owner){.address = block->address,
								 .bytes = block->bytes,
								 .inside_bytes = block->bytes,
								 .made_ns = block->origin.at_ns,
								 .stack = block->origin.stack,
								 .is_block = true});
	}
}

static void add_tensors(struct tensor_lives *lives, const struct owners_pass *pass)
{
	const struct device_blocks *blocks = &pass->revisit.blocks;

	for (size_t i = 0; i < blocks->n_tensors; i++) {
		const struct device_tensor *tensor = &blocks->tensors[i];
		const struct device_block *block;

		if (!tensor->is_alive || !tensor->inside_bytes)
			continue;
		block = torsh_device_blocks_at(blocks, tensor->address);
		if (block && block->scope == pass->request->place)
			torsh_tensor_lives_add(lives, &(struct tensor_of_owner){
							      .address = tensor->address,
							      .bytes = tensor->bytes,
							      .inside_bytes = tensor->inside_bytes,
							      .made_ns = tensor->origin.at_ns,
							      .stack = tensor->origin.stack});
	}
}

static void put_tensors(struct device_owners *owners, const struct owners_request *request,
			struct tensor_lives *lives)
{
	for (size_t i = 0; i < lives->n; i++) {
		struct tensor_of_owner *tensor = &lives->items[i];
		struct shown_by_stack shown =
			torsh_stack_evidence(lives->process, tensor->stack, request->symbols, true);
		struct tensor_kind kind;

		tensor->life.evidence = shown.evidence;
		kind = torsh_tensor_kind(&tensor->life);
		put(owners, &(struct device_owner){
				    .kind = kind.kind,
				    .reason = kind.reason,
				    .name = (char *)(kind.kind == OWNER_WORKSPACE ? shown.library
						     : tensor->module		  ? tensor->module
								      : tensor->operator_name),
				    .bytes = (int64_t)tensor->inside_bytes,
				    .n = 1});
	}
}

static void find_tensors(struct device_owners *owners, const struct owners_pass *pass)
{
	const struct owners_request *request = pass->request;
	const struct memory_of_devices *memory = request->memory;
	struct recorded_process *process = (struct recorded_process *)request->process->process;
	struct tensor_lives lives = {
		.process = process,
		.device = TENSOR_ON_CUDA << 8 |
			  request->process->blocks.scopes[request->place].device};
	struct batch batch;

	add_tensors(&lives, pass);
	add_blocks(&lives, pass);
	if (lives.n) {
		torsh_batch_collect(&batch, memory->recording, process, memory->prepass);
		torsh_tensor_lives_collect(&lives, memory->recording, memory->prepass, &batch);
		torsh_batch_free(&batch);
		put_tensors(owners, request, &lives);
	}
	torsh_tensor_lives_free(&lives);
}

/* ---- other memory ---------------------------------------------------------------------------- */

/* Write "function, file:line" of the program's line, or as much as is known. */
static const char *name_site(const struct owners_request *request, const struct device_block *block,
			     char *out)
{
	const struct frame *frame = torsh_cuda_frames_line(request->process->process,
							   block->origin.stack, request->symbols);
	const char *slash = frame && frame->file ? strrchr(frame->file, '/') : NULL;

	if (!frame || (!frame->function && !frame->file))
		return NULL;
	snprintf(out, NAME_BYTES, "%s", frame->function ? frame->function : "?");
	if (frame->file && frame->line)
		snprintf(out + strlen(out), NAME_BYTES - strlen(out), ", %s:%d",
			 slash ? slash + 1 : frame->file, frame->line);
	return out;
}

static void put_direct(struct device_owners *owners, const struct owners_request *request,
		       const struct device_block *block)
{
	struct shown_by_stack shown = torsh_stack_evidence(
		request->process->process, block->origin.stack, request->symbols, false);
	char name[NAME_BYTES];

	if (shown.evidence == STACK_OF_LIBRARY)
		torsh_device_owners_put(owners, OWNER_WORKSPACE, shown.library,
					(int64_t)block->bytes, 1);
	else
		torsh_device_owners_put(owners, OWNER_DIRECT, name_site(request, block, name),
					(int64_t)block->bytes, 1);
}

static void put_blocks(struct device_owners *owners, const struct owners_pass *pass)
{
	const struct owners_request *request = pass->request;
	const struct device_blocks *blocks = &pass->revisit.blocks;
	uint64_t free_bytes[2] = {0};

	for (size_t i = 0; i < blocks->n_blocks; i++) {
		const struct device_block *block = &blocks->blocks[i];

		if (!block->is_alive || block->scope != request->place)
			continue;
		owners->live_bytes += block->bytes;
		if (request->process->blocks.is_managed[block->ordinal])
			free_bytes[torsh_owners_pass_is_private(pass, block)] +=
				block->bytes - block->tensor_bytes;
		else if (!is_tensor(request, block))
			put_direct(owners, request, block);
	}
	owners->cache = torsh_owners_pass_free_blocks(pass, false, UINT64_MAX);
	torsh_device_owners_put(owners, OWNER_CACHE, NULL, (int64_t)free_bytes[0], owners->cache.n);
	torsh_device_owners_put(owners, OWNER_GRAPH_POOL, NULL, (int64_t)free_bytes[1],
				torsh_owners_pass_free_blocks(pass, true, UINT64_MAX).n);
}

/*
 * ----------------------------------------------------------------------------------------------
 */

static int compare_owners(const void *a, const void *b)
{
	const struct device_owner *x = a, *y = b;

	if (x->kind != y->kind)
		return x->kind < y->kind ? -1 : 1;
	if (x->bytes != y->bytes)
		return x->bytes > y->bytes ? -1 : 1;
	if (!x->name || !y->name)
		return !x->name - !y->name;
	return strcmp(x->name, y->name);
}

int64_t torsh_device_owners_sum(const struct device_owners *owners, enum owner_kind kind)
{
	int64_t bytes = 0;

	for (size_t i = 0; i < owners->n; i++) {
		if (kind == N_OWNER_KINDS || owners->items[i].kind == kind)
			bytes += owners->items[i].bytes;
	}
	return bytes;
}

double torsh_free_blocks_fragmentation(const struct free_blocks *blocks)
{
	return blocks->bytes ? 1 - (double)blocks->largest_bytes / (double)blocks->bytes : 0;
}

/* What the driver keeps for the stacks of all threads that can be on the device at once. */
static uint64_t local_bytes(const struct owners_request *request,
			    const struct event_device_limits *limits)
{
	const struct prepass_process *of =
		torsh_prepass_of(request->memory->prepass, request->process->process);
	const struct event_device *device =
		of ? torsh_device_list_find(&of->devices, limits->device) : NULL;

	return device ? limits->stack_bytes * device->multiprocessors *
				device->multiprocessor_warps * device->warp_threads
		      : 0;
}

void torsh_device_owners_collect(struct device_owners *owners, const struct owners_request *request)
{
	struct owners_pass pass;
	int64_t whole;

	*owners = (struct device_owners){.at_ns = request->at.at_ns};
	torsh_owners_pass_make(&pass, request);
	put_blocks(owners, &pass);
	find_tensors(owners, &pass);
	owners->has_framework = request->process->places[request->place].has_framework;
	owners->growth = pass.growth;
	torsh_driver_figure_put(owners, request, &pass.revisit.blocks.scopes[request->place],
				&pass.code);
	owners->limits = pass.limits;
	owners->local_bytes = local_bytes(request, &pass.limits);
	owners->users = torsh_device_users_at(
		request, owners->has_driver ? owners->driver_ns : owners->at_ns,
		&owners->users_reason);
	torsh_owners_pass_free(&pass);
	whole = (int64_t)(owners->has_driver ? owners->driver_bytes : owners->live_bytes);
	torsh_device_owners_put(owners, OWNER_REMAINDER, NULL,
				whole - torsh_device_owners_sum(owners, N_OWNER_KINDS), 0);
	if (owners->n)
		qsort(owners->items, owners->n, sizeof(*owners->items), compare_owners);
}

void torsh_device_owners_free(struct device_owners *owners)
{
	for (size_t i = 0; i < owners->n; i++)
		free(owners->items[i].name);
	free(owners->items);
}
