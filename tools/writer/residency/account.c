/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/writer/residency/account.h"

#include <stdlib.h>
#include <string.h>

#include "tools/base/containers/array.h"
#include "tools/base/memory.h"

void torsh_account_free(struct account *account)
{
	for (uint32_t i = 0; i < account->n_names; i++)
		free(account->names[i]);
	free(account->names);
	free(account->owners);
	free(account->fragments);
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

void torsh_account_add(struct account *account, struct owner owner, uint64_t bytes,
		       uint64_t pss_bytes)
{
	const struct hash_entry *entry;

	if (!bytes)
		return;
	entry = torsh_hash_map_put(&account->owner_of, &owner, sizeof(owner), account->n_owners);
	if (entry->value == account->n_owners) {
		account->owners =
			torsh_array_reserve(account->owners, account->n_owners,
					    &account->owner_capacity, sizeof(*account->owners));
		account->owners[account->n_owners++].owner = owner;
	}
	account->owners[entry->value].bytes += bytes;
	account->owners[entry->value].pss_bytes += pss_bytes;
}

struct fragment *torsh_account_fragment(struct account *account, uint32_t name, uint32_t size_class)
{
	uint32_t key[] = {name, size_class};
	const struct hash_entry *entry =
		torsh_hash_map_put(&account->fragment_of, key, sizeof(key), account->n_fragments);

	if (entry->value == account->n_fragments) {
		account->fragments = torsh_array_reserve(account->fragments, account->n_fragments,
							 &account->fragment_capacity,
							 sizeof(*account->fragments));
		account->fragments[account->n_fragments++] =
			(struct fragment){.name = name, .size_class = size_class};
	}
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

void torsh_account_end(struct account *account, uint32_t n_most)
{
	uint32_t n = 0, n_of_kind = 0;

	torsh_hash_map_free(&account->owner_of);
	torsh_hash_map_free(&account->fragment_of);
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
