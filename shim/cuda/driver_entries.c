/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The driver's entry points that the agent interposes (shim/cuda/driver.def): exported for who is
 * linked with the driver, and handed out to who asks the driver or the loader for them by name.
 */
#include <dlfcn.h>
#include <stdbool.h>
#include <string.h>

#include "shim/cuda/driver.h"
#include "shim/hooks.h"
#include "shim/libc/next.h"
#include "shim/loader/objects.h"
#include "shim/loader/symbol.h"

#define PER_THREAD_STREAM 2u /* CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM */
#define NAME_MAX_BYTES 64u
#define NEWEST_VERSION 13020 /* of CUDA whose forms are known */
/* the latest of those that are older than cuGetProcAddress: cuMemHostRegister_v2 */
#define OTHER_SECOND_FORMS 6050

/* The file's name of the object that was found; "" where that isn't known. */
static const char *object_name(const Dl_info *found)
{
	const char *slash = found->dli_fname ? strrchr(found->dli_fname, '/') : NULL;

	return slash ? slash + 1 : found->dli_fname ? found->dli_fname : "";
}

void torsh_driver_keep(void)
{
	static _Atomic uint32_t is_kept;
	const void *start;
	Dl_info info;

	if (atomic_load_explicit(&is_kept, memory_order_relaxed))
		return;
	start = torsh_objects_find_in(DRIVER_LIBRARY, "cuInit");
	if (!start || !dladdr(start, &info) || !info.dli_fname)
		return;
	torsh_next.dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);
	atomic_store_explicit(&is_kept, 1, memory_order_relaxed);
}

/* ---- the table of entry points --------------------------------------------------------------- */

#define KERNEL(name, suffix, ...) ENTRY(name) ENTRY(name##suffix)
#define COPY KERNEL
#define MEMCPY_2D KERNEL
#define MEMCPY_3D KERNEL
#define BATCH KERNEL
#define MEMCPY_3D_BATCH KERNEL
#define DECOMPRESS KERNEL
#define MEMSET KERNEL
#define GRAPH KERNEL
#define UNSEEN(name, ...) ENTRY(name)
#define MEMORY(name, ...) ENTRY(name)
#define MEMORY_IN_STREAM(name, ...) ENTRY(name) ENTRY(name##_ptsz)
#define ENTRIES_OF_WORK "shim/cuda/driver.def"
#define ENTRIES_OF_MEMORY "shim/cuda/driver_memory.def"
#define OTHER_ENTRIES                     \
	ENTRY(cuGetProcAddress)           \
	ENTRY(cuGetProcAddress_v2)        \
	ENTRY(cuCtxDestroy_v2)            \
	ENTRY(cuDevicePrimaryCtxReset_v2) \
	ENTRY(cuDevicePrimaryCtxRelease_v2)

enum entry_id {
#define ENTRY(name) ENTRY_##name,
#include ENTRIES_OF_WORK
#include ENTRIES_OF_MEMORY
	OTHER_ENTRIES
#undef ENTRY
		N_ENTRIES
};

struct entry {
	const char *name;
	void *ours;
	/* the driver's, or what another library behind us has there; NULL: not found yet */
	void *_Atomic next;
};

static struct entry entries[N_ENTRIES];

/* Stands for the definition of what this driver lacks. */
static char is_missing;

static void *look_for_next(struct entry *entry)
{
	void *next = torsh_objects_find_behind(entry->name);

	if (next)
		torsh_driver_keep();
	if (!next && torsh_objects_find_in(DRIVER_LIBRARY, "cuInit"))
		next = &is_missing;
	atomic_store_explicit(&entry->next, next, memory_order_relaxed);
	return next;
}

/* The definition behind ours; NULL: there is none. */
static void *next_of(enum entry_id id)
{
	void *next = atomic_load_explicit(&entries[id].next, memory_order_relaxed);

	if (__builtin_expect(!next, 0))
		next = look_for_next(&entries[id]);
	return next == &is_missing ? NULL : next;
}

static struct entry *find_entry(const char *name)
{
	for (size_t i = 0; i < N_ENTRIES; i++)
		if (!strcmp(entries[i].name, name))
			return &entries[i];
	return NULL;
}

int torsh_driver_has(const char *name)
{
	return name[0] == 'c' && name[1] == 'u' && find_entry(name);
}

/* ---- who asks, and what is found ------------------------------------------------------------- */

int torsh_driver_is_own(const void *caller)
{
	static const char *const beginnings[] = {"libcuda.so", "libcupti.so", "libnvidia-",
						 "libnvperf_", "libcudadebugger."};
	const char *object;
	Dl_info found;

	if (!dladdr(caller, &found))
		return 0;
	object = object_name(&found);
	for (size_t i = 0; i < sizeof(beginnings) / sizeof(*beginnings); i++)
		if (!strncmp(object, beginnings[i], strlen(beginnings[i])))
			return 1;
	return 0;
}

static struct entry *find_next(const void *found)
{
	for (size_t i = 0; i < N_ENTRIES; i++)
		if (next_of((enum entry_id)i) == found)
			return &entries[i];
	return NULL;
}

static int is_ours(const void *found)
{
	for (size_t i = 0; i < N_ENTRIES; i++)
		if (entries[i].ours == found)
			return 1;
	return 0;
}

int torsh_driver_lacks(const char *name)
{
	return !next_of((enum entry_id)(find_entry(name) - entries));
}

void *torsh_driver_instead(const char *name, void *found)
{
	const struct entry *entry;

	if (!found)
		return NULL;
	/*
	 * Asked for in all that is loaded, ours came first: without the driver it isn't there. The
	 * error is dlsym's.
	 */
	if (is_ours(found) && torsh_driver_lacks(name))
		return torsh_symbol(RTLD_NEXT, name);
	entry = torsh_cuda_interposes_driver() ? find_next(found) : NULL;
	return entry ? entry->ours : found;
}

/* ---- cuGetProcAddress ------------------------------------------------------------------------ */

/*
 * The version of CUDA in which a plain name began to mean its second form, which takes other
 * parameters.
 */
static int second_form_since(const char *name)
{
	static const struct {
		const char *name;
		int version;
	} late[] = {{"cuGetProcAddress", 12000},
		    {"cuMemPrefetchAsync", 12020},
		    {"cuMemcpyBatchAsync", 13000},
		    {"cuMemcpy3DBatchAsync", 13000}};

	for (size_t i = 0; i < sizeof(late) / sizeof(*late); i++)
		if (!strcmp(late[i].name, name))
			return late[i].version;
	return OTHER_SECOND_FORMS;
}

/*
 * As the driver does: the newest form of a plain name in that version, of one that is per thread
 * where that is asked for.
 */
static struct entry *find_form(const char *name, int version, int is_per_thread)
{
	static const char *const versions[] = {"_v2", ""};
	static const char *const forms[] = {"_ptsz", "_ptds", ""};
	char full[NAME_MAX_BYTES];

	if (strlen(name) + sizeof("_v2_ptsz") > sizeof(full))
		return NULL;
	for (size_t v = version < second_form_since(name); v < sizeof(versions) / sizeof(*versions);
	     v++) {
		for (size_t f = is_per_thread ? 0 : 2; f < sizeof(forms) / sizeof(*forms); f++) {
			struct entry *entry;

			strcpy(full, name);
			strcat(full, versions[v]);
			strcat(full, forms[f]);
			entry = find_entry(full);
			if (entry)
				return entry;
		}
	}
	return NULL;
}

/*
 * A driver may hand out another address than that of the symbol. One that is a symbol's, but of
 * none of ours, is a function with other parameters.
 */
static int is_nameless(const void *address)
{
	Dl_info found;

	return dladdr(address, &found) && found.dli_saddr != address &&
	       !strncmp(object_name(&found), &DRIVER_LIBRARY[1], sizeof(DRIVER_LIBRARY) - 2);
}

static void replace(const char *name, void **found, int version, uint64_t flags, const void *caller)
{
	struct entry *entry;

	if (!found || !*found || !name || !torsh_cuda_interposes_driver() ||
	    torsh_driver_is_own(caller))
		return;
	entry = find_next(*found);
	if (!entry && is_nameless(*found)) {
		entry = find_form(name, version, (flags & PER_THREAD_STREAM) != 0);
		/* The next version may have given the name to a function with other parameters. */
		if (entry && version > NEWEST_VERSION) {
			torsh_cuda_unrecorded(name);
			return;
		}
	}
	if (entry && next_of((enum entry_id)(entry - entries)))
		*found = entry->ours;
}

EXPORT int cuGetProcAddress(const char *name, void **found, int version, uint64_t flags);
EXPORT int cuGetProcAddress(const char *name, void **found, int version, uint64_t flags)
{
	int (*next)(const char *, void **, int, uint64_t);
	int result;

	*(void **)&next = next_of(ENTRY_cuGetProcAddress);
	if (!next)
		return DRIVER_NOT_INITIALIZED;
	result = next(name, found, version, flags);
	if (!result)
		replace(name, found, version, flags, __builtin_return_address(0));
	return result;
}

EXPORT int cuGetProcAddress_v2(const char *name, void **found, int version, uint64_t flags,
			       int *status);
EXPORT int cuGetProcAddress_v2(const char *name, void **found, int version, uint64_t flags,
			       int *status)
{
	int (*next)(const char *, void **, int, uint64_t, int *);
	int result;

	*(void **)&next = next_of(ENTRY_cuGetProcAddress_v2);
	if (!next)
		return DRIVER_NOT_INITIALIZED;
	result = next(name, found, version, flags, status);
	if (!result)
		replace(name, found, version, flags, __builtin_return_address(0));
	return result;
}

/* ---- contexts -------------------------------------------------------------------------------- */

/* ENDING(name, parameter, argument, fields of struct driver_ending) */
#define ENDING(name, parameter, argument, ...)                                                 \
	EXPORT int name parameter;                                                             \
	EXPORT int name parameter                                                              \
	{                                                                                      \
		int is_watched = atomic_load_explicit(&torsh_driver_watch,                     \
						      memory_order_relaxed) == DRIVER_WATCHED; \
		struct driver_ending ending = {__VA_ARGS__};                                   \
		int(*next) parameter, result;                                                  \
                                                                                               \
		*(void **)&next = next_of(ENTRY_##name);                                       \
		if (!next)                                                                     \
			return DRIVER_NOT_INITIALIZED;                                         \
		if (!is_watched)                                                               \
			return next argument;                                                  \
		torsh_cuda_context_ending(&ending);                                            \
		result = next argument;                                                        \
		torsh_cuda_context_ended(&ending, result);                                     \
		return result;                                                                 \
	}
ENDING(cuCtxDestroy_v2, (void *context), (context), .context = context, .device = -1)
ENDING(cuDevicePrimaryCtxReset_v2, (int device), (device), .device = device)
ENDING(cuDevicePrimaryCtxRelease_v2, (int device), (device), .device = device, .is_release = 1)
#undef ENDING

#define UNWRAP(...) __VA_ARGS__
#define IS_UNWATCHED                                                                        \
	__builtin_expect(atomic_load_explicit(&torsh_driver_watch, memory_order_relaxed) == \
				 DRIVER_UNWATCHED,                                          \
			 1)

/* ---- memory ---------------------------------------------------------------------------------- */

#undef MEMORY
#undef MEMORY_IN_STREAM
/* Straight on is by a tail call: with CUPTI stacks are taken behind us, and we are not in them. */
#define FORM(name, call, parameters_, arguments, type, ...)                                  \
	static __attribute__((noinline)) int record_##name parameters_                       \
	{                                                                                    \
		const void *frame = __builtin_frame_address(0);                              \
		struct driver_memory_use *use = torsh_cuda_memory_use(DRIVER_##call, frame); \
		int(*next) parameters_, result;                                              \
                                                                                             \
		_Static_assert(sizeof(struct type) <= sizeof(use->parameters),               \
			       "parameters of " #name);                                      \
		if (use) {                                                                   \
			memcpy(use->parameters, &(const struct type){__VA_ARGS__},           \
			       sizeof(struct type));                                         \
			torsh_cuda_memory_calling();                                         \
		}                                                                            \
		*(void **)&next = next_of(ENTRY_##name);                                     \
		result = next arguments;                                                     \
		if (use)                                                                     \
			torsh_cuda_memory_called(result, frame);                             \
		return result;                                                               \
	}                                                                                    \
	EXPORT int name parameters_;                                                         \
	EXPORT int name parameters_                                                          \
	{                                                                                    \
		int(*next) parameters_;                                                      \
                                                                                             \
		*(void **)&next = next_of(ENTRY_##name);                                     \
		if (!next)                                                                   \
			return DRIVER_NOT_INITIALIZED;                                       \
		return IS_UNWATCHED ? next arguments : record_##name arguments;              \
	}
#define MEMORY(name, ...) FORM(name, name, __VA_ARGS__)
#define MEMORY_IN_STREAM(name, ...) \
	FORM(name, name, __VA_ARGS__) FORM(name##_ptsz, name, __VA_ARGS__)
#include ENTRIES_OF_MEMORY
#undef MEMORY
#undef MEMORY_IN_STREAM
#undef FORM

/* ---- work ------------------------------------------------------------------------------------ */

/* Of the thread's call that is being recorded. */
static _Thread_local struct driver_batch batch_recorded;

static void *stream_of(void *stream, int is_per_thread)
{
	if (stream)
		return stream;
	return is_per_thread ? DRIVER_STREAM_PER_THREAD : DRIVER_STREAM_LEGACY;
}

static void set_shape(struct driver_work *work, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
		      unsigned by, unsigned bz)
{
	work->grid[0] = gx;
	work->grid[1] = gy;
	work->grid[2] = gz;
	work->block[0] = bx;
	work->block[1] = by;
	work->block[2] = bz;
}

static void set_memcpy_2d(struct driver_work *work, const struct driver_memcpy_2d *copy)
{
	work->what = DRIVER_COPY;
	if (!copy)
		return;
	work->direction = torsh_driver_direction(copy->from.memory, copy->to.memory);
	work->from = copy->from.device;
	work->to = copy->to.device;
	work->bytes = copy->width_bytes * copy->height;
}

static void set_memcpy_3d(struct driver_work *work, const struct driver_memcpy_3d *copy,
			  bool is_peer)
{
	work->what = DRIVER_COPY;
	if (!copy)
		return;
	work->direction =
		is_peer ? COPY_PTOP : torsh_driver_direction(copy->from.memory, copy->to.memory);
	work->from = copy->from.device;
	work->to = copy->to.device;
	work->bytes = copy->width_bytes * copy->height * (copy->depth ? copy->depth : 1);
}

#undef KERNEL
#undef COPY
#undef MEMCPY_2D
#undef MEMCPY_3D
#undef BATCH
#undef MEMCPY_3D_BATCH
#undef DECOMPRESS
#undef MEMSET
#undef GRAPH
#undef UNSEEN

/* One entry point: straight on, or recorded before and after. `set` fills in `work`. */
#define FORM(name_, is_per_thread, parameters, arguments, stream_, set)          \
	static __attribute__((noinline)) int record_##name_ parameters           \
	{                                                                        \
		const void *frame = __builtin_frame_address(0);                  \
		struct driver_work *work = torsh_cuda_work(frame);               \
		int(*next) parameters, result;                                   \
                                                                                 \
		if (work) {                                                      \
			set;                                                     \
			work->api = #name_;                                      \
			work->stream = stream_of(stream_, is_per_thread);        \
			torsh_cuda_launching(work);                              \
		}                                                                \
		*(void **)&next = next_of(ENTRY_##name_);                        \
		result = next arguments;                                         \
		if (work)                                                        \
			torsh_cuda_launched(work, result, frame);                \
		return result;                                                   \
	}                                                                        \
	EXPORT int name_ parameters;                                             \
	EXPORT int name_ parameters                                              \
	{                                                                        \
		int(*next) parameters;                                           \
                                                                                 \
		*(void **)&next = next_of(ENTRY_##name_);                        \
		if (!next)                                                       \
			return DRIVER_NOT_INITIALIZED;                           \
		return IS_UNWATCHED ? next arguments : record_##name_ arguments; \
	}
#define BOTH(name, suffix, parameters, arguments, stream, set) \
	FORM(name, 0, parameters, arguments, stream, set)      \
	FORM(name##suffix, 1, parameters, arguments, stream, set)

#define KERNEL(name, suffix, parameters, arguments, stream, f, grid, block, shared)      \
	BOTH(name, suffix, parameters, arguments, stream,                                \
	     (work->what = DRIVER_KERNEL, work->function = (f),                          \
	      set_shape(work, UNWRAP grid, UNWRAP block), work->shared_bytes = (shared), \
	      work->is_async = 1))
#define COPY(name, suffix, parameters, arguments, stream, way, to_, from_, n)                \
	BOTH(name, suffix, parameters, arguments, stream,                                    \
	     (work->what = DRIVER_COPY, work->direction = (way), work->to = (uint64_t)(to_), \
	      work->from = (uint64_t)(from_), work->bytes = (n)))
#define MEMCPY_2D(name, suffix, parameters, arguments, stream, c) \
	BOTH(name, suffix, parameters, arguments, stream, set_memcpy_2d(work, c))
#define MEMCPY_3D(name, suffix, parameters, arguments, stream, c, is_peer) \
	BOTH(name, suffix, parameters, arguments, stream, set_memcpy_3d(work, c, is_peer))
#define MANY(name, suffix, parameters, arguments, stream, way, ...) \
	BOTH(name, suffix, parameters, arguments, stream,           \
	     (work->what = DRIVER_COPY, work->direction = (way),    \
	      batch_recorded = (struct driver_batch){__VA_ARGS__}, work->batch = &batch_recorded))
#define BATCH(name, suffix, parameters, arguments, stream, way, to_, from_, sizes_, n_)      \
	MANY(name, suffix, parameters, arguments, stream, way, .to = (to_), .from = (from_), \
	     .sizes = (sizes_), .n = (n_))
#define MEMCPY_3D_BATCH(name, suffix, parameters, arguments, stream, c, n_) \
	MANY(name, suffix, parameters, arguments, stream, COPY_UNKNOWN, .copies_3d = (c), .n = (n_))
#define DECOMPRESS(name, suffix, parameters, arguments, stream, e, n_)        \
	MANY(name, suffix, parameters, arguments, stream, COPY_DECOMPRESSION, \
	     .decompressions = (e), .n = (n_))
#define MEMSET(name, suffix, parameters, arguments, stream, to_, v, n) \
	BOTH(name, suffix, parameters, arguments, stream,              \
	     (work->what = DRIVER_MEMSET, work->to = (to_), work->value = (v), work->bytes = (n)))
#define GRAPH(name, suffix, parameters, arguments, stream, g) \
	BOTH(name, suffix, parameters, arguments, stream,     \
	     (work->what = DRIVER_GRAPH, work->function = (g), work->is_async = 1))
#define UNSEEN(name, parameters, arguments)              \
	EXPORT int name parameters;                      \
	EXPORT int name parameters                       \
	{                                                \
		int(*next) parameters;                   \
                                                         \
		*(void **)&next = next_of(ENTRY_##name); \
		if (!next)                               \
			return DRIVER_NOT_INITIALIZED;   \
		if (!IS_UNWATCHED)                       \
			torsh_cuda_unrecorded(#name);    \
		return next arguments;                   \
	}
#include ENTRIES_OF_WORK
#undef KERNEL
#undef COPY
#undef MEMCPY_2D
#undef MEMCPY_3D
#undef BATCH
#undef MEMCPY_3D_BATCH
#undef DECOMPRESS
#undef MEMSET
#undef GRAPH
#undef UNSEEN
#undef MANY

#define KERNEL(name, suffix, ...) ENTRY(name) ENTRY(name##suffix)
#define COPY KERNEL
#define MEMCPY_2D KERNEL
#define MEMCPY_3D KERNEL
#define BATCH KERNEL
#define MEMCPY_3D_BATCH KERNEL
#define DECOMPRESS KERNEL
#define MEMSET KERNEL
#define GRAPH KERNEL
#define UNSEEN(name, ...) ENTRY(name)
#define MEMORY(name, ...) ENTRY(name)
#define MEMORY_IN_STREAM(name, ...) ENTRY(name) ENTRY(name##_ptsz)
static struct entry entries[N_ENTRIES] = {
#define ENTRY(name_) [ENTRY_##name_] = {.name = #name_, .ours = (void *)name_},
#include ENTRIES_OF_WORK
#include ENTRIES_OF_MEMORY
	OTHER_ENTRIES
#undef ENTRY
};
