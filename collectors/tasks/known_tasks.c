/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "collectors/tasks/known_tasks.h"

#include <stdatomic.h>
#include <stddef.h>

#include "shim/sys.h"

#define N_SLOTS (1u << 16)
#define TRIES 4096u /* a fork may have copied the table while another thread had it */

struct table {
	_Atomic int is_busy;
	uint32_t n;
	struct known_task slots[N_SLOTS]; /* object NULL: free */
};

static void *_Atomic pages; /* a struct table; NULL: none yet, or this is a forked child */

static struct table *take_table(void)
{
	struct table *table = torsh_sys_own_once(&pages, sizeof(*table));

	for (uint32_t i = 0; table && i < TRIES; i++) {
		/* Pairs with the release in leave_table. */
		if (!atomic_exchange_explicit(&table->is_busy, 1, memory_order_acquire))
			return table;
	}
	return NULL;
}

static void leave_table(struct table *table)
{
	atomic_store_explicit(&table->is_busy, 0, memory_order_release);
}

static uint32_t home_of(const void *object)
{
	return (uint32_t)(((uintptr_t)object >> 4) * UINT64_C(0x9e3779b97f4a7c15) >> 48) % N_SLOTS;
}

/* The object's slot, or the free one where it would be. */
static uint32_t slot_of(const struct table *table, const void *object)
{
	uint32_t i = home_of(object);

	while (table->slots[i].object && table->slots[i].object != object)
		i = (i + 1) % N_SLOTS;
	return i;
}

bool torsh_known_tasks_find(const void *object, const void *identity, struct known_task *found)
{
	struct table *table = take_table();

	if (!table)
		return false;
	*found = table->slots[slot_of(table, object)];
	leave_table(table);
	return found->object && found->identity == identity;
}

bool torsh_known_tasks_put(const struct known_task *task)
{
	struct table *table = take_table();
	uint32_t i;
	bool has_room;

	if (!table)
		return false;
	i = slot_of(table, task->object);
	has_room = table->slots[i].object || table->n < KNOWN_TASKS_MAX;
	if (has_room) {
		table->n += !table->slots[i].object;
		table->slots[i] = *task;
	}
	leave_table(table);
	return has_room;
}

/* What follows a free slot moves into it, unless it would be before its home. */
static void close_gap(struct table *table, uint32_t gap)
{
	uint32_t i = gap;

	for (;;) {
		i = (i + 1) % N_SLOTS;
		if (!table->slots[i].object)
			break;
		if ((i - home_of(table->slots[i].object)) % N_SLOTS < (i - gap) % N_SLOTS)
			continue;
		table->slots[gap] = table->slots[i];
		gap = i;
	}
	table->slots[gap] = (struct known_task){0};
}

void torsh_known_tasks_drop(const void *object)
{
	struct table *table = take_table();
	uint32_t i;

	if (!table)
		return;
	i = slot_of(table, object);
	if (table->slots[i].object) {
		table->n--;
		close_gap(table, i);
	}
	leave_table(table);
}
