/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "shim/libc/next.h"

#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "shim/allocators/jemalloc.h"
#include "shim/hot.h"
#include "shim/libc/boot.h"
#include "shim/loader/elf_symbol.h"
#include "shim/loader/objects.h"
#include "shim/loader/symbol.h"
#include "shim/sys.h"

enum { LOOK_UP_NOT_BEGUN, LOOK_UP_UNDER_WAY, LOOK_UP_DONE };

static _Atomic int look_up_state;
static _Thread_local bool is_looking_up;
static const char *problem, *allocator_path = "";

/*
 * The libraries that the program was started with are in the loader's list from after this one to
 * here; they are never unloaded.
 */
static const struct link_map *first_behind, *last_at_start, *allocators_map;

uint32_t torsh_next_is_elsewhere;

static void *boot_calloc(size_t n, size_t size)
{
	size_t total;

	return __builtin_mul_overflow(n, size, &total) ? NULL : torsh_boot_alloc(total, 0);
}

static int boot_memalign(void **out, size_t alignment, size_t n)
{
	*out = torsh_boot_alloc(n, alignment);
	return *out ? 0 : ENOMEM;
}

static void *boot_mmap(void *at, size_t n, int prot, int flags, int fd, off_t offset)
{
	void *p = torsh_sys_mmap(at, n, prot, flags, fd, offset);

	if (!torsh_sys_failed((long)p))
		return p;
	errno = -(int)(long)p;
	return MAP_FAILED;
}

static int boot_munmap(void *at, size_t n)
{
	long result = torsh_sys_munmap(at, n);

	if (!result)
		return 0;
	errno = (int)-result;
	return -1;
}

static int look_up(void);

/*
 * Stubs: look everything up, then call the definition. A call from within the look-up is served as
 * in next.def.
 */
#define NEXT(result, name, parameters, arguments, stub)   \
	static result stub_##name parameters              \
	{                                                 \
		if (look_up())                            \
			return torsh_next.name arguments; \
		return stub;                              \
	}
#define NEXT_VOID(name, parameters, arguments, stub) \
	static void stub_##name parameters           \
	{                                            \
		if (look_up())                       \
			torsh_next.name arguments;   \
		else                                 \
			(void)(stub);                \
	}
#include "shim/libc/next.def"
#undef NEXT
#undef NEXT_VOID

HOT struct torsh_next torsh_next = {
#define NEXT(result, name, parameters, arguments, stub) .name = stub_##name,
#define NEXT_VOID(name, parameters, arguments, stub) .name = stub_##name,
#include "shim/libc/next.def"
#undef NEXT
#undef NEXT_VOID
};

/* Without a definition the stub stays, and fails as in next.def. */
static void find(const char *name, void *place, bool is_heaps)
{
	void *found = is_heaps ? torsh_symbol_heap(RTLD_NEXT, name) : torsh_symbol(RTLD_NEXT, name);

	if (found)
		memcpy(place, &found, sizeof(found));
}

static const char *path_of(const void *code)
{
	Dl_info info;

	return dladdr(code, &info) && info.dli_fname ? info.dli_fname : "";
}

/*
 * The path of another object that defines name before this library, NULL if this is the first. A
 * program that takes the address of a function has an undefined symbol for it, which resolves to
 * this one.
 */
static const char *defined_before_us(const char *name)
{
	void *first = torsh_symbol_heap(RTLD_DEFAULT, name);
	const ElfW(Sym) *symbol = NULL;
	Dl_info info;

	/* dladdr reads all symbols of the object. */
	if (!first ||
	    torsh_objects_of(first) == torsh_objects_of((const void *)&torsh_next_own_path) ||
	    !dladdr1(first, &info, (void **)&symbol, RTLD_DL_SYMENT) || !info.dli_fname)
		return NULL;
	if (!strcmp(info.dli_fname, torsh_next_own_path()) ||
	    (symbol && symbol->st_shndx == SHN_UNDEF))
		return NULL;
	return info.dli_fname;
}

/* Functions that the allocator's library lacks. */
static uint32_t find_elsewhere(const struct torsh_next *found)
{
	const void *const aligned[] = {
		[NEXT_POSIX_MEMALIGN] = (const void *)found->posix_memalign,
		[NEXT_ALIGNED_ALLOC] = (const void *)found->aligned_alloc,
		[NEXT_MEMALIGN] = (const void *)found->memalign,
		[NEXT_VALLOC] = (const void *)found->valloc,
		[NEXT_PVALLOC] = (const void *)found->pvalloc,
	};
	uint32_t set = 0;

	for (uint32_t i = 0; i < sizeof(aligned) / sizeof(aligned[0]); i++)
		set |= (uint32_t)(torsh_objects_of(aligned[i]) != allocators_map) << i;
	return set;
}

/* Find out which library serves the program's heap, and whether its calls can be recorded. */
static void inspect_allocator(struct torsh_next *found)
{
	void *usable = torsh_symbol_heap(RTLD_NEXT, "malloc_usable_size");
	const char *before_us = defined_before_us("malloc");

	allocator_path = path_of((const void *)found->malloc);
	allocators_map = torsh_objects_of((const void *)found->malloc);
	torsh_next_is_elsewhere = find_elsewhere(found);
	found->has_usable_size = usable && torsh_objects_of(usable) == allocators_map;
	if (before_us) {
		allocator_path = before_us;
		problem =
			"heap: the program defines malloc itself (a statically linked allocator), or another "
			"library was preloaded before the agent: no heap event can be seen";
	} else if (defined_before_us("free")) {
		problem =
			"heap: the program defines free itself, but not malloc: heap events are incomplete";
	}
}

static void use_jemalloc(struct torsh_next *next)
{
	const char *wanted = secure_getenv("TORSH_PROFILER_ALLOCATOR");
	bool unused;

	if (!wanted || strcmp(wanted, "jemalloc"))
		return;
	/*
	 * Its other functions (operator new, mallocx) would still return blocks, which jemalloc's
	 * free can't take.
	 */
	if (problem || !allocators_map ||
	    !torsh_elf_symbol(allocators_map, "__libc_start_main", NULL)) {
		problem =
			problem ? problem
				: "heap: TORSH_PROFILER_ALLOCATOR=jemalloc is ignored: the program brings another "
				  "allocator than the C library's, which goes on serving it";
		return;
	}
	if (torsh_jemalloc_serve(next,
				 torsh_next_at_start("__libc_single_threaded", NULL, &unused))) {
		allocator_path = "torsh's jemalloc";
		torsh_next_is_elsewhere = 0;
		next->has_usable_size = true;
	} else {
		problem =
			"heap: TORSH_PROFILER_ALLOCATOR=jemalloc has no effect: the agent was built without jemalloc";
	}
}

static void remember_libraries(void)
{
	const struct link_map *own = torsh_objects_of((const void *)&torsh_next_own_path);

	first_behind = own ? own->l_next : NULL;
	for (const struct link_map *map = first_behind; map; map = map->l_next)
		last_at_start = map;
}

/* Not inlined: its stack is released before the calls that follow. */
static __attribute__((noinline)) int look_up_once(void)
{
	int expected = LOOK_UP_NOT_BEGUN;
	struct torsh_next found = torsh_next;

	if (is_looking_up)
		return 0;
	if (!atomic_compare_exchange_strong(&look_up_state, &expected, LOOK_UP_UNDER_WAY)) {
		while (atomic_load_explicit(&look_up_state, memory_order_acquire) != LOOK_UP_DONE)
			torsh_cpu_pause();
		return 1;
	}
	is_looking_up = true;
#define IS_HEAPS(name) (offsetof(struct torsh_next, name) <= offsetof(struct torsh_next, pvalloc))
#define NEXT(result, name, parameters, arguments, stub) find(#name, &found.name, IS_HEAPS(name));
#define NEXT_VOID(name, parameters, arguments, stub) find(#name, &found.name, IS_HEAPS(name));
#include "shim/libc/next.def"
#undef NEXT
#undef NEXT_VOID
#undef IS_HEAPS
	remember_libraries();
	inspect_allocator(&found);
	use_jemalloc(&found);
	torsh_jemalloc_leave();
	torsh_next = found;
	is_looking_up = false;
	atomic_store_explicit(&look_up_state, LOOK_UP_DONE, memory_order_release);
	return 1;
}

static int look_up(void)
{
	return atomic_load_explicit(&look_up_state, memory_order_acquire) == LOOK_UP_DONE ||
	       look_up_once();
}

int torsh_next_resolve(void)
{
	return look_up();
}

const char *torsh_next_own_path(void)
{
	static const char *_Atomic known;
	const char *path = atomic_load_explicit(&known, memory_order_relaxed);

	if (!path) {
		path = path_of((const void *)&torsh_next_own_path);
		atomic_store_explicit(&known, path, memory_order_relaxed);
	}
	return path;
}

void *torsh_next_at_start(const char *name, size_t *n_bytes, bool *is_allocators)
{
	look_up();
	for (const struct link_map *map = first_behind; map; map = map->l_next) {
		void *found = torsh_elf_symbol(map, name, n_bytes);

		if (found) {
			*is_allocators = map == allocators_map;
			return found;
		}
		if (map == last_at_start)
			break;
	}
	return NULL;
}

bool torsh_next_is_defined_before(const char *name)
{
	look_up();
	for (const struct link_map *map = first_behind ? first_behind->l_prev : NULL; map;
	     map = map->l_prev)
		if (torsh_elf_symbol(map, name, NULL))
			return true;
	return false;
}

const char *torsh_next_allocators_code(size_t *n_bytes)
{
	static const char *const own_names[] = {"mallocx", "tc_malloc", "mi_malloc"};
	const char *first = NULL;
	Dl_info info;

	look_up();
	for (size_t i = 0; allocators_map && !first && i < sizeof(own_names) / sizeof(*own_names);
	     i++)
		first = torsh_elf_symbol(allocators_map, own_names[i], NULL);
	*n_bytes = 0;
	if (!first || !dladdr(first, &info))
		return NULL;
	const ElfW(Ehdr) *header = info.dli_fbase;
	const ElfW(Phdr) *segments = (const void *)((const char *)info.dli_fbase + header->e_phoff);

	for (size_t i = 0; i < header->e_phnum; i++)
		if (segments[i].p_type == PT_LOAD &&
		    segments[i].p_vaddr + segments[i].p_memsz > *n_bytes)
			*n_bytes = segments[i].p_vaddr + segments[i].p_memsz;
	return info.dli_fbase;
}

bool torsh_next_is_preloaded(void)
{
	const struct link_map *map = NULL;
	Dl_info info;

	if (!dladdr1((const void *)&torsh_next_is_preloaded, &info, (void **)&map, RTLD_DL_LINKMAP))
		return true;
	for (map = map->l_next; map; map = map->l_next) {
		const char *slash = strrchr(map->l_name, '/');

		if (!strncmp(slash ? slash + 1 : map->l_name, "libc.so", 7))
			return true;
	}
	return false;
}

const char *torsh_next_problem(void)
{
	look_up();
	return problem;
}

const char *torsh_next_allocator(void)
{
	look_up();
	return allocator_path;
}
