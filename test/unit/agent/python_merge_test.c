/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Merged stacks of a made-up interpreter, CPython 3.11's and 3.12's layout, whose frames lie at the
 * same addresses again and again: the changes that are sent must add up to what a walk of all
 * frames finds.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "agent/modules/module_registry.h"
#include "agent/producer/counter.h"
#include "agent/python/python.h"
#include "agent/python/python_code.h"
#include "agent/stack/stack.h"
#include "shim/cpython/cpython.h"
#include "test/unit/fixtures/random.h"

#define MOST_LINKS 90u
#define MOST_NATIVE (2 * MOST_LINKS + 8)
#define FRAME_BYTES 80u /* the fields that CPython has at least */
#define NATIVE_WORDS 16u
#define N_CODES 3u
#define N_LINES 4u

struct code {
	uint64_t bytes[N_LINES];
	uint32_t name; /* another one has the same address after its death */
};

static const struct cpython_layout layouts[] = {
	{.activations = CPYTHON_BY_CFRAME,
	 .instruction = CPYTHON_POINTER,
	 .tstate_cframe = 56,
	 .cframe_frame = 8,
	 .cframe_previous = 16,
	 .frame_previous = 48,
	 .frame_code = 32,
	 .frame_instruction = 56,
	 .frame_is_entry = 68},
	{.activations = CPYTHON_BY_FRAME,
	 .instruction = CPYTHON_POINTER,
	 .tstate_cframe = 56,
	 .frame_previous = 8,
	 .frame_instruction = 56,
	 .frame_owner = 70},
};

/* A function's frame: called by C, in a native frame of the evaluation function, or within one. */
struct call {
	uint32_t code, line;
	bool by_c;
	uint32_t native; /* of its activation */
};

static struct {
	struct call calls[MOST_LINKS];
	uint32_t n;
	uint32_t native_ids[MOST_NATIVE], n_native;
	uint32_t n_inner; /* native frames inside of the last evaluation function */
} now;

static struct code codes[N_CODES];
static uint64_t tstate[16];
/* the last frame ends where memory does, as it may in a chunk of the interpreter's */
static uint64_t (*data)[FRAME_BYTES / 8];
static uint64_t native_stack[MOST_NATIVE][NATIVE_WORDS];
static struct stack_frame frames[MOST_NATIVE];
static uint32_t sent[MOST_NATIVE + MOST_LINKS], n_sent, former[MOST_NATIVE], n_former;
static struct python *python;

uint32_t torsh_python_code_id(uintptr_t frame, uintptr_t code, uint32_t version,
			      uint64_t instruction, struct python_codes *cache)
{
	const struct code *of = (const struct code *)code;

	(void)frame;
	(void)version;
	(void)cache;
	return 1000 + of->name * N_LINES + (uint32_t)((instruction - code) / sizeof(uint64_t));
}

void torsh_stack_view(const struct stack *s, struct stack_view *view)
{
	(void)s;
	*view = (struct stack_view){.depth = now.n_native, .ids = now.native_ids, .frames = frames};
}

static _Atomic uint64_t counters[N_COUNTERS];
_Atomic uint64_t *torsh_counters = counters;

uint32_t torsh_registry_add_address(uintptr_t ip, uint32_t flags, const struct module *module)
{
	(void)ip;
	(void)flags;
	(void)module;
	fail();
	return 0;
}

static void *this_thread(void)
{
	return tstate;
}

static void set(void *at, uint32_t offset, uint64_t value, size_t n_bytes)
{
	memcpy((char *)at + offset, &value, n_bytes);
}

/* ---- the interpreter ---- */

/* Write everything where the layout wants it. */
static void write_frames(void)
{
	const struct cpython_layout *at = &torsh_cpython.at;
	bool by_frame = at->activations == CPYTHON_BY_FRAME;
	uintptr_t previous = 0, cframe = 0;

	for (uint32_t i = 0; i < now.n; i++) {
		const struct call *call = &now.calls[i];
		void *own = native_stack[MOST_NATIVE - 1 - call->native];

		if (call->by_c && by_frame) {
			set(own, at->frame_previous, previous, 8);
			set(own, at->frame_code, 0, 8);
			set(own, at->frame_instruction, 0, 8);
			set(own, at->frame_owner, CPYTHON_OWNER_INTERPRETER, 1);
			previous = (uintptr_t)own;
		} else if (call->by_c) {
			set(own, at->cframe_previous, cframe, 8);
			cframe = (uintptr_t)own;
		}
		set(data[i], at->frame_previous, previous, 8);
		set(data[i], at->frame_code, (uintptr_t)&codes[call->code], 8);
		set(data[i], at->frame_instruction, (uintptr_t)&codes[call->code].bytes[call->line],
		    8);
		if (by_frame)
			set(data[i], at->frame_owner, 0, 1);
		else
			set(data[i], at->frame_is_entry, call->by_c, 1);
		previous = (uintptr_t)data[i];
		if (!by_frame)
			set((void *)cframe, at->cframe_frame, previous, 8);
	}
	if (by_frame)
		tstate[0] = previous;
	tstate[56 / 8] = by_frame ? (uintptr_t)tstate : cframe;
}

static void call(bool by_c, uint32_t code, uint32_t line)
{
	struct call made = {.code = code, .line = line, .by_c = by_c || !now.n};

	if (now.n == MOST_LINKS)
		return;
	now.n_native -= now.n_inner;
	if (made.by_c) {
		now.native_ids[now.n_native++] = 1;
		now.native_ids[now.n_native++] = 2; /* the evaluation function */
	}
	now.n_inner = 1;
	made.native = now.n_native - 1;
	if (!made.by_c)
		made.native = now.calls[now.n - 1].native;
	now.native_ids[now.n_native++] = 3;
	now.calls[now.n++] = made;
}

static void leave(void)
{
	if (now.n < 2)
		return;
	now.n_native -= now.n_inner;
	if (now.calls[--now.n].by_c)
		now.n_native -= 2;
	now.n_inner = 1;
	now.native_ids[now.n_native++] = 3;
}

static void kill_code(uint32_t code)
{
	for (uint32_t i = 0; i < now.n; i++) {
		if (now.calls[i].code == code)
			return;
	}
	codes[code].name++;
	(*torsh_cpython_version_of((uintptr_t)&codes[code]))++;
	torsh_cpython_deaths++;
}

/* ---- captures ---- */

static uint32_t put_truth(uint32_t *ids)
{
	uint32_t n = 0, i = 0;

	for (uint32_t native = 0; native < now.n_native; native++) {
		for (; i < now.n && now.calls[i].native == native; i++)
			ids[n++] =
				1000 + codes[now.calls[i].code].name * N_LINES + now.calls[i].line;
		ids[n++] = now.native_ids[native];
	}
	return n;
}

static void capture(void)
{
	struct stack_delta delta;
	uint32_t truth[MOST_NATIVE + MOST_LINKS], n_truth = put_truth(truth), n_kept = 0;

	write_frames();
	while (n_kept < n_former && n_kept < now.n_native &&
	       former[n_kept] == now.native_ids[n_kept])
		n_kept++;
	delta = (struct stack_delta){.pop = n_former - n_kept,
				     .n_push = now.n_native - n_kept,
				     .push = &now.native_ids[n_kept]};
	torsh_python_merge(python, NULL, true, &delta);
	memcpy(former, now.native_ids, sizeof(former));
	n_former = now.n_native;
	assert_true(delta.pop <= n_sent);
	n_sent -= delta.pop;
	memcpy(&sent[n_sent], delta.push, delta.n_push * sizeof(*sent));
	n_sent += delta.n_push;
	assert_int_equal(n_sent, n_truth);
	assert_memory_equal(sent, truth, n_truth * sizeof(*truth));
}

static void begin(const struct cpython_layout *layout)
{
	memset(&now, 0, sizeof(now));
	n_sent = n_former = 0;
	for (uint32_t i = 0; i < MOST_NATIVE; i++)
		frames[i].sp = (uintptr_t)native_stack[MOST_NATIVE - 1 - i];
	torsh_cpython.at = *layout;
	torsh_cpython.this_thread = this_thread;
	torsh_python_invalidate(python);
	for (uint32_t i = 0; i < N_CODES; i++)
		codes[i].name = i;
	call(true, 0, 0);
	capture();
}

static void changes_add_up(void **state)
{
	uint64_t seed = 1;

	(void)state;
	for (uint32_t i = 0; i < 2; i++) {
		begin(&layouts[i]);
		for (uint32_t step = 0; step < 400000; step++) {
			uint32_t what = (uint32_t)(random_next(&seed) % 8);
			uint32_t code = (uint32_t)(random_next(&seed) % N_CODES);
			uint32_t line = (uint32_t)(random_next(&seed) % N_LINES);

			if (what < 3)
				call(what == 0, code, line);
			else if (what < 5)
				leave();
			else if (what < 7)
				now.calls[now.n - 1].line = line;
			else
				kill_code(code);
			if (random_next(&seed) % 2)
				capture();
		}
	}
}

static void a_call_by_c_is_not_a_direct_one(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < 2; i++) {
		begin(&layouts[i]);
		for (uint32_t n = 0; n < 4; n++) {
			call(n % 2, 1, 1);
			call(false, 2, 2);
			capture();
			leave();
			leave();
			/* The same native frames, of other activations. */
			call(n % 2, 1, 1);
			call(!(n % 2), 2, 2);
			capture();
			leave();
			leave();
		}
	}
}

static void code_at_the_address_of_a_dead_one_is_another(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < 2; i++) {
		begin(&layouts[i]);
		call(false, 1, 1);
		capture();
		now.calls[1].line = 2;
		capture();
		leave();
		kill_code(1);
		call(false, 1, 2);
		capture();
		/* A line that the dead one had executed, too. */
		now.calls[1].line = 1;
		capture();
	}
}

static void outer_frames_may_be_on_other_lines(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < 2; i++) {
		begin(&layouts[i]);
		while (now.n < MOST_LINKS)
			call(now.n % 7 == 0, 1, 0);
		capture();
		for (uint32_t k = 0; k < MOST_LINKS; k++) {
			now.calls[k].line = 1;
			capture();
			now.calls[k].line = 2;
			now.calls[MOST_LINKS - 1].line = 3;
			capture();
		}
	}
}

static int make_python(void **state)
{
	size_t n_page = (size_t)sysconf(_SC_PAGESIZE), n_bytes = MOST_LINKS * sizeof(*data);
	size_t n_mapped = (n_bytes + n_page - 1) / n_page * n_page;
	char *pages = mmap(NULL, n_mapped + n_page, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	(void)state;
	python = calloc(1, torsh_python_bytes() + 16);
	if (!python || pages == MAP_FAILED || munmap(pages + n_mapped, n_page))
		return -1;
	data = (void *)(pages + n_mapped - n_bytes);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(changes_add_up),
		cmocka_unit_test(a_call_by_c_is_not_a_direct_one),
		cmocka_unit_test(code_at_the_address_of_a_dead_one_is_another),
		cmocka_unit_test(outer_frames_may_be_on_other_lines),
	};

	return cmocka_run_group_tests(tests, make_python, NULL);
}
