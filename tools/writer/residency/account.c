/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/writer/residency/account.h"

#include <stdlib.h>
#include <string.h>

#include "tools/base/containers/array.h"
#include "tools/base/memory.h"

void torsh_account_begin(struct account *account)
{
	account->has_stacks = true;
	torsh_account_clear_stacks(account);
}

void torsh_account_clear_stacks(struct account *account)
{
	free(account->of_stacks);
	account->of_stacks = NULL;
	account->of_stacks_capacity = 0;
	account->n_of_stacks = 1;
	torsh_number_index_destroy(&account->stack_index);
	torsh_number_index_create(&account->stack_index);
}

/* No block of a stack is added any more. */
static void free_stacks(struct account *account)
{
	free(account->of_stacks);
	account->of_stacks = NULL;
	account->n_of_stacks = 0;
	account->has_stacks = false;
	torsh_number_index_destroy(&account->stack_index);
}

void torsh_account_free(struct account *account)
{
	for (uint32_t i = 0; i < account->n_names; i++)
		free(account->names[i]);
	free(account->names);
	free(account->owners);
	free(account->breaks.lines);
	free(account->fragments);
	free(account->recent);
	free_stacks(account);
	torsh_hash_map_free(&account->owner_of);
	torsh_hash_map_free(&account->name_of);
	torsh_hash_map_free(&account->fragment_of);
	*account = (struct account){0};
}

uint32_t torsh_account_name(struct account *account, const char *name)
{
	const struct hash_entry *entry;

	if (!name)
		return 0;
	entry = torsh_hash_map_put_text(&account->name_of, name, account->n_names);
	if (entry->value == account->n_names) {
		account->names =
			torsh_array_reserve(account->names, account->n_names,
					    &account->name_capacity, sizeof(*account->names));
		account->names[account->n_names++] = torsh_memory_text(name);
	}
	return (uint32_t)entry->value + 1;
}

static bool is_owner(const struct owner *a, const struct owner *b)
{
	return a->kind == b->kind && a->stack == b->stack && a->name == b->name;
}

/* Returns the number of an owner, which is added if it is new. */
static uint32_t number_of(struct account *account, const struct owner *owner)
{
	const struct hash_entry *entry =
		torsh_hash_map_put(&account->owner_of, owner, sizeof(*owner), account->n_owners);

	if (entry->value == account->n_owners) {
		account->owners =
			torsh_array_reserve(account->owners, account->n_owners,
					    &account->owner_capacity, sizeof(*account->owners));
		account->owners[account->n_owners++].owner = *owner;
	}
	return (uint32_t)entry->value;
}

static uint32_t hash_stack(uint32_t stack)
{
	return torsh_number_index_hash(0, stack);
}

static struct stack_bytes *add_stack(struct account *account, uint32_t stack)
{
	uint32_t number = account->n_of_stacks++;

	if (torsh_number_index_is_full(&account->stack_index)) {
		torsh_number_index_grow(&account->stack_index);
		for (uint32_t i = 1; i < number; i++)
			torsh_number_index_add(&account->stack_index, i,
					       hash_stack(account->of_stacks[i].stack));
	}
	torsh_number_index_add(&account->stack_index, number, hash_stack(stack));
	account->of_stacks =
		torsh_array_reserve(account->of_stacks, number, &account->of_stacks_capacity,
				    sizeof(*account->of_stacks));
	account->of_stacks[number].stack = stack;
	return &account->of_stacks[number];
}

/* Valid until the next one. */
static struct stack_bytes *stack_of(struct account *account, uint32_t stack)
{
	uint32_t hash = hash_stack(stack), number;
	uint32_t i = torsh_number_index_home(&account->stack_index, hash);

	while ((number = torsh_number_index_next(&account->stack_index, hash, &i))) {
		if (account->of_stacks[number].stack == stack)
			return &account->of_stacks[number];
	}
	return add_stack(account, stack);
}

/* Millions of blocks come one by one. */
static bool add_block(struct account *account, const struct owner *owner, uint64_t bytes,
		      uint64_t pss_bytes)
{
	struct stack_bytes *of;

	if (owner->kind != OWNER_HEAP || owner->name || !account->has_stacks)
		return false;
	of = stack_of(account, owner->stack);
	of->bytes += bytes;
	of->pss_bytes += pss_bytes;
	return true;
}

void torsh_account_add(struct account *account, struct owner owner, uint64_t bytes,
		       uint64_t pss_bytes)
{
	uint32_t *recent;

	if (!bytes || add_block(account, &owner, bytes, pss_bytes))
		return;
	if (!account->recent)
		account->recent = torsh_memory_new(RECENT_OWNERS, sizeof(*account->recent));
	recent = &account->recent[(owner.stack * 17 + owner.name * 5 + owner.kind) % RECENT_OWNERS];
	if (!*recent || !is_owner(&account->owners[*recent - 1].owner, &owner))
		*recent = number_of(account, &owner) + 1;
	account->owners[*recent - 1].bytes += bytes;
	account->owners[*recent - 1].pss_bytes += pss_bytes;
}

struct fragment *torsh_account_fragment(struct account *account, uint32_t name, uint32_t size_class)
{
	uint32_t key[] = {name, size_class};
	uint32_t *recent = &account->recent_fragments[(name * 67 + size_class) % RECENT_FRAGMENTS];
	const struct hash_entry *entry;

	if (*recent && account->fragments[*recent - 1].name == name &&
	    account->fragments[*recent - 1].size_class == size_class)
		return &account->fragments[*recent - 1];
	entry = torsh_hash_map_put(&account->fragment_of, key, sizeof(key), account->n_fragments);
	if (entry->value == account->n_fragments) {
		account->fragments = torsh_array_reserve(account->fragments, account->n_fragments,
							 &account->fragment_capacity,
							 sizeof(*account->fragments));
		account->fragments[account->n_fragments++] =
			(struct fragment){.name = name, .size_class = size_class};
	}
	*recent = (uint32_t)entry->value + 1;
	return &account->fragments[entry->value];
}

/* By kind, then the largest first. */
static int compare_owners(const void *a, const void *b)
{
	const struct owner_bytes *x = a, *y = b;

	if (x->owner.kind != y->owner.kind)
		return x->owner.kind < y->owner.kind ? -1 : 1;
	if (x->bytes != y->bytes)
		return x->bytes > y->bytes ? -1 : 1;
	if (x->owner.stack != y->owner.stack)
		return x->owner.stack < y->owner.stack ? -1 : 1;
	return (x->owner.name > y->owner.name) - (x->owner.name < y->owner.name);
}

static int compare_fragments(const void *a, const void *b)
{
	const struct fragment *x = a, *y = b;

	if (x->name != y->name)
		return x->name < y->name ? -1 : 1;
	return (x->size_class > y->size_class) - (x->size_class < y->size_class);
}

static bool is_anonymous(const struct owner *owner)
{
	return !owner->stack && !owner->name;
}

static uint32_t bits_of(uint64_t bytes)
{
	return bytes ? 64 - (uint32_t)__builtin_clzll(bytes) : 0;
}

/* The least number of bits that more than n_most stacks don't exceed: those with fewer are many. */
static uint32_t least_bits(const struct account *account, uint32_t n_most)
{
	uint32_t n_of_bits[65] = {0}, n = 0, bits = 64;

	for (uint32_t i = 1; i < account->n_of_stacks; i++)
		n_of_bits[bits_of(account->of_stacks[i].bytes)]++;
	while (bits > 1 && (n += n_of_bits[bits]) <= n_most)
		bits--;
	return bits;
}

/* Make owners of the stacks with most, and one of all others. */
static void end_stacks(struct account *account, uint32_t n_most)
{
	uint32_t bits = least_bits(account, n_most);
	struct stack_bytes rest = {0};

	account->has_stacks = false;
	for (uint32_t i = 1; i < account->n_of_stacks; i++) {
		const struct stack_bytes *stack = &account->of_stacks[i];
		struct owner owner = {.kind = OWNER_HEAP, .stack = stack->stack};

		if (bits_of(stack->bytes) >= bits) {
			torsh_account_add(account, owner, stack->bytes, stack->pss_bytes);
			continue;
		}
		rest.bytes += stack->bytes;
		rest.pss_bytes += stack->pss_bytes;
	}
	torsh_account_add(account, (struct owner){.kind = OWNER_HEAP}, rest.bytes, rest.pss_bytes);
	free_stacks(account);
}

void torsh_account_end(struct account *account, uint32_t n_most)
{
	uint32_t n = 0, n_of_kind = 0;

	end_stacks(account, n_most);
	torsh_hash_map_free(&account->owner_of);
	torsh_hash_map_free(&account->fragment_of);
	free(account->recent);
	account->recent = NULL;
	if (account->n_fragments)
		qsort(account->fragments, account->n_fragments, sizeof(*account->fragments),
		      compare_fragments);
	if (account->n_owners)
		qsort(account->owners, account->n_owners, sizeof(*account->owners), compare_owners);
	for (uint32_t i = 0; i < account->n_owners; i++) {
		struct owner_bytes *last = n ? &account->owners[n - 1] : NULL;
		struct owner_bytes row = account->owners[i];

		if (!last || last->owner.kind != row.owner.kind)
			n_of_kind = 0;
		if (n_of_kind > n_most && is_anonymous(&last->owner)) {
			last->bytes += row.bytes;
			last->pss_bytes += row.pss_bytes;
			continue;
		}
		if (n_of_kind++ >= n_most)
			row.owner.stack = row.owner.name = 0;
		account->owners[n++] = row;
	}
	account->n_owners = n;
}
