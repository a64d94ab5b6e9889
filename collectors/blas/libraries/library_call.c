/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "collectors/blas/libraries/library_call.h"

#include <stdatomic.h>
#include <string.h>

#include "agent/producer/label.h"
#include "shim/loader/elf_symbol.h"
#include "shim/loader/objects.h"

void torsh_library_call_init(struct library_call *call)
{
	call->m = call->n = call->k = call->batch = 0;
	call->type = call->letters = 0;
	call->routine = "";
	call->shape = (struct text)TEXT_IN(call->shape_bytes);
	call->details = (struct text)TEXT_IN(call->details_bytes);
}

void torsh_library_put_size(struct library_call *call, uint64_t size, char separator)
{
	if (call->shape.length)
		torsh_text_put_bytes(&call->shape, &separator, 1);
	torsh_text_put_number(&call->shape, size);
}

void *torsh_library_query(struct blas_slot *slot, uint32_t i, const char *name)
{
	void *found = atomic_load_explicit(&slot->queries[i], memory_order_acquire);
	const struct link_map *map;

	if (found)
		return found;
	map = torsh_objects_of(atomic_load_explicit(&slot->next, memory_order_acquire));
	found = map ? torsh_elf_symbol(map, name, NULL) : NULL;
	/* Pairs with the acquire above; threads that store it at once store the same. */
	atomic_store_explicit(&slot->queries[i], found, memory_order_release);
	return found;
}

uint32_t torsh_library_cuda_type(uint64_t number)
{
	/* CUDA_R_32F, R_64F, R_16F, R_8I, C_32F, C_64F and so on: library_types.h. */
	static const char letters[] = "sdhicz  u j   b";

	if (number == 28 || number == 29)
		return number == 28 ? 'e' : 'f';
	return number < sizeof(letters) - 1 && letters[number] != ' ' ? (uint8_t)letters[number]
								      : 0;
}

void torsh_library_call_label(const struct library_call *call, struct event *event)
{
	event->library_call.routine = torsh_label(call->routine, strlen(call->routine));
	event->library_call.type = call->type;
	event->library_call.m = call->m;
	event->library_call.n = call->n;
	event->library_call.k = call->k;
	event->library_call.batch = call->batch;
	event->library_call.letters = call->letters;
	event->library_call.shape = torsh_label(call->shape.bytes, call->shape.length);
	event->library_call.details = torsh_label(call->details.bytes, call->details.length);
}
