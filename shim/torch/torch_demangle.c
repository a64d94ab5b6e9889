/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "shim/torch/torch_demangle.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "shim/hooks.h"
#include "shim/libc/next.h"
#include "shim/loader/elf_symbol.h"
#include "shim/loader/objects.h"
#include "shim/loader/relocations.h"
#include "shim/sys.h"

#define DEMANGLE "__cxa_demangle"
#define C10_DEMANGLE "_ZN3c108demangleB5cxx11EPKc"
#define C10_DEMANGLE_OLD "_ZN3c108demangleEPKc" /* built with the old std::string */
#define DEMANGLE_NO_MEMORY (-1) /* a status of it */
#define NAME_BITS 10
#define N_NAMES (1u << NAME_BITS)
#define NAME_TRIES 4u
#define TEXT_BYTES (256u * 1024)

typedef char *demangle(const char *mangled, char *buffer, size_t *n_bytes, int *status);

/* Never changed once it is in the table. */
struct name {
	uint32_t n_text; /* with its end */
	char text[]; /* then the mangled name */
};

static demangle *real;
static torch_name_block *block_for;
static const struct name *_Atomic names[N_NAMES]; /* by the mangled name's address */
static char *texts; /* TEXT_BYTES */
static _Atomic uint32_t n_texts; /* bytes of them in use */

static const struct name *_Atomic *slot_of(const char *mangled, uint32_t try)
{
	uint64_t hash = (uintptr_t)mangled * UINT64_C(0x9e3779b97f4a7c15);

	return &names[((uint32_t)(hash >> (64 - NAME_BITS)) + try) & (N_NAMES - 1)];
}

/* Another library may have been loaded at the address: the name itself decides. */
static const struct name *find(const char *mangled)
{
	for (uint32_t i = 0; i < NAME_TRIES; i++) {
		/* Pairs with the release in remember. */
		const struct name *name =
			atomic_load_explicit(slot_of(mangled, i), memory_order_acquire);

		if (!name)
			return NULL;
		if (!strcmp(name->text + name->n_text, mangled))
			return name;
	}
	return NULL;
}

/* Without room the name is not remembered. */
static void remember(const char *mangled, const char *text)
{
	size_t n_text = strlen(text) + 1, n_mangled = strlen(mangled) + 1;
	size_t n = (sizeof(struct name) + n_text + n_mangled + 7) & ~(size_t)7;
	struct name *name;
	uint32_t at;

	if (n > TEXT_BYTES || atomic_load_explicit(&n_texts, memory_order_relaxed) > TEXT_BYTES - n)
		return;
	at = atomic_fetch_add_explicit(&n_texts, (uint32_t)n, memory_order_relaxed);
	if (at > TEXT_BYTES - n)
		return;
	name = (struct name *)(void *)(texts + at);
	name->n_text = (uint32_t)n_text;
	memcpy(name->text, text, n_text);
	memcpy(name->text + n_text, mangled, n_mangled);
	for (uint32_t i = 0; i < NAME_TRIES; i++) {
		const struct name *none = NULL;

		if (atomic_compare_exchange_strong_explicit(slot_of(mangled, i), &none, name,
							    memory_order_release,
							    memory_order_relaxed))
			return;
	}
}

/* libc10 passes neither a buffer nor a place for its size. */
static char *demangle_once(const char *mangled, char *buffer, size_t *n_bytes, int *status)
{
	const struct name *name = mangled && !buffer && !n_bytes ? find(mangled) : NULL;
	char *text;

	if (!name) {
		text = real(mangled, buffer, n_bytes, status);
		if (text && !buffer && !n_bytes)
			remember(mangled, text);
		return text;
	}
	text = block_for(name->n_text, HOOK_FRAME);
	if (text)
		memcpy(text, name->text, name->n_text);
	if (status)
		*status = text ? 0 : DEMANGLE_NO_MEMORY;
	return text;
}

/* libc10's calls: bound before to the real definition, or not yet. */
static void bind(void *context, const struct torsh_relocation *relocation)
{
	const struct torsh_elf_image *image = context;
	void **place;

	if (!relocation->is_function || strcmp(relocation->name, DEMANGLE) != 0)
		return;
	place = torsh_elf_address(image, relocation->at);
	if (!place || torsh_relocations_is_relro(image, place) || !torsh_sys_is_writable(place))
		return;
	__atomic_store_n(place, (void *)demangle_once, __ATOMIC_RELEASE);
}

void torsh_torch_demangle_bind(torch_name_block *name_block)
{
	void *user = torsh_objects_find(C10_DEMANGLE);
	const struct link_map *map;
	struct torsh_elf_image image;
	bool is_allocators;

	if (!user)
		user = torsh_objects_find(C10_DEMANGLE_OLD);
	map = user ? torsh_objects_of(user) : NULL;
	/* As the loader binds it: a definition that the program was started with comes first. */
	*(void **)&real = torsh_next_at_start(DEMANGLE, NULL, &is_allocators);
	if (!real)
		*(void **)&real = torsh_objects_find_in("libstdc++.so", DEMANGLE);
	if (!map || !real || !torsh_elf_describe(map, &image))
		return;
	block_for = name_block;
	texts = torsh_sys_pages(TEXT_BYTES);
	if (texts)
		torsh_relocations_visit(&image, map->l_ld, bind, &image);
}
