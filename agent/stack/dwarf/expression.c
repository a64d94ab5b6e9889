/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The stack machine of DWARF expressions (DWARF 5, table 7.9). */
#include "agent/stack/dwarf/expression.h"

#include <errno.h>
#include <stdbool.h>

#include "agent/modules/memory_probe.h"
#include "agent/stack/dwarf/cfi.h"
#include "agent/stack/dwarf/dwarf_bytes.h"

#define MAX_OPERATIONS 1000 /* branches may loop */

struct machine {
	struct dwarf_bytes code;
	const uint8_t *start;
	const uintptr_t *registers;
	uintptr_t *known_page;
	uint32_t n;
	uintptr_t *values;
};

static void push(struct machine *m, uintptr_t value)
{
	if (m->n == EXPRESSION_VALUES)
		m->code.is_bad = true;
	else
		m->values[m->n++] = value;
}

static uintptr_t pop(struct machine *m)
{
	if (m->n == 0) {
		m->code.is_bad = true;
		return 0;
	}
	return m->values[--m->n];
}

static void push_register(struct machine *m, uint64_t number, int64_t offset)
{
	if (number >= CFI_N_REGISTERS)
		m->code.is_bad = true;
	else
		push(m, m->registers[number] + (uintptr_t)offset);
}

static void push_pick(struct machine *m, uint64_t depth)
{
	if (depth >= m->n)
		m->code.is_bad = true;
	else
		push(m, m->values[m->n - 1 - depth]);
}

/* Memory is read in aligned words, the only form that call frame information stores. */
static void push_memory(struct machine *m, uintptr_t address, uint64_t size_bytes)
{
	uintptr_t word, shift = address % 8 * 8;

	if (size_bytes == 0 || size_bytes > 8 || address % 8 + size_bytes > 8 ||
	    !torsh_probe_read(address - address % 8, m->known_page, &word)) {
		m->code.is_bad = true;
		return;
	}
	push(m, word >> shift &
			(size_bytes == 8 ? UINTPTR_MAX : ((uintptr_t)1 << size_bytes * 8) - 1));
}

static void branch(struct machine *m, bool is_taken)
{
	int64_t distance = torsh_dwarf_signed(&m->code, 2);

	if (!is_taken)
		return;
	if (distance < m->start - m->code.at || distance > m->code.end - m->code.at)
		m->code.is_bad = true;
	else
		m->code.at += distance;
}

/* a op b; sets is_bad for what can't be computed. */
static uintptr_t combine(struct machine *m, uint8_t op, uintptr_t a, uintptr_t b)
{
	bool is_divided = op == 0x1b || op == 0x1d;

	/* Division by zero, or the one quotient that overflows: CPUs trap. */
	if (is_divided && (b == 0 || (b == UINTPTR_MAX && a == (uintptr_t)INTPTR_MIN))) {
		m->code.is_bad = true;
		return 0;
	}
	switch (op) {
	case 0x1a:
		return a & b;
	case 0x1b:
		return (uintptr_t)((intptr_t)a / (intptr_t)b);
	case 0x1c:
		return a - b;
	case 0x1d:
		return a % b;
	case 0x1e:
		return a * b;
	case 0x21:
		return a | b;
	case 0x22:
		return a + b;
	case 0x24:
		return b < 64 ? a << b : 0;
	case 0x25:
		return b < 64 ? a >> b : 0;
	case 0x26:
		return (uintptr_t)((intptr_t)a >> (b < 64 ? b : 63));
	default:
		return a ^ b;
	}
}

static bool is_true(uint8_t op, intptr_t a, intptr_t b)
{
	switch (op) {
	case 0x29:
		return a == b;
	case 0x2a:
		return a >= b;
	case 0x2b:
		return a > b;
	case 0x2c:
		return a <= b;
	case 0x2d:
		return a < b;
	default:
		return a != b;
	}
}

/* Operations with two operands; false: another operation. */
static bool run_binary(struct machine *m, uint8_t op)
{
	bool is_comparison = op >= 0x29 && op <= 0x2e;
	uintptr_t a, b;

	if (!is_comparison && (op < 0x1a || op > 0x1e) && op != 0x21 && op != 0x22 &&
	    (op < 0x24 || op > 0x27))
		return false;
	b = pop(m);
	a = pop(m);
	push(m, is_comparison ? is_true(op, (intptr_t)a, (intptr_t)b) : combine(m, op, a, b));
	return true;
}

/* Constants and copies of what is on the stack; false: another operation. */
static bool run_constant(struct machine *m, uint8_t op)
{
	switch (op) {
	case 0x03:
		push(m, torsh_dwarf_unsigned(&m->code, 8));
		break; /* addr */
	case 0x08:
		push(m, torsh_dwarf_unsigned(&m->code, 1));
		break;
	case 0x09:
		push(m, (uintptr_t)torsh_dwarf_signed(&m->code, 1));
		break;
	case 0x0a:
		push(m, torsh_dwarf_unsigned(&m->code, 2));
		break;
	case 0x0b:
		push(m, (uintptr_t)torsh_dwarf_signed(&m->code, 2));
		break;
	case 0x0c:
		push(m, torsh_dwarf_unsigned(&m->code, 4));
		break;
	case 0x0d:
		push(m, (uintptr_t)torsh_dwarf_signed(&m->code, 4));
		break;
	case 0x0e:
	case 0x0f:
		push(m, torsh_dwarf_unsigned(&m->code, 8));
		break;
	case 0x10:
		push(m, torsh_dwarf_uleb(&m->code));
		break;
	case 0x11:
		push(m, (uintptr_t)torsh_dwarf_sleb(&m->code));
		break;
	case 0x12:
		push_pick(m, 0);
		break;
	case 0x14:
		push_pick(m, 1);
		break;
	case 0x15:
		push_pick(m, torsh_dwarf_unsigned(&m->code, 1));
		break;
	default:
		return false;
	}
	return true;
}

static void run_other(struct machine *m, uint8_t op)
{
	uintptr_t a, b, c;

	switch (op) {
	case 0x06:
		push_memory(m, pop(m), 8);
		break;
	case 0x13:
		pop(m);
		break;
	case 0x16: /* swap */
		a = pop(m), b = pop(m);
		push(m, a), push(m, b);
		break;
	case 0x17: /* rot */
		a = pop(m), b = pop(m), c = pop(m);
		push(m, a), push(m, c), push(m, b);
		break;
	case 0x19: /* abs */
		a = pop(m);
		push(m, (intptr_t)a < 0 ? -a : a);
		break;
	case 0x1f:
		push(m, -pop(m));
		break;
	case 0x20:
		push(m, ~pop(m));
		break;
	case 0x23:
		push(m, pop(m) + torsh_dwarf_uleb(&m->code));
		break;
	case 0x28:
		branch(m, pop(m) != 0);
		break;
	case 0x2f:
		branch(m, true);
		break;
	case 0x92: /* bregx */
		a = torsh_dwarf_uleb(&m->code);
		push_register(m, a, torsh_dwarf_sleb(&m->code));
		break;
	case 0x94: /* deref_size */
		push_memory(m, pop(m), torsh_dwarf_unsigned(&m->code, 1));
		break;
	case 0x96:
		break; /* nop */
	default:
		m->code.is_bad = true;
	}
}

int torsh_expression_run(const uint8_t *block, const uintptr_t *registers, const uintptr_t *initial,
			 uintptr_t *known_page, uintptr_t values[EXPRESSION_VALUES],
			 uintptr_t *result)
{
	struct machine m = {.registers = registers, .known_page = known_page, .values = values};
	struct dwarf_bytes head = {.at = block, .end = block + 10};
	uint64_t length = torsh_dwarf_uleb(&head);

	m.start = head.at;
	m.code = (struct dwarf_bytes){.at = head.at, .end = head.at + length};
	if (initial)
		push(&m, *initial);
	for (int i = 0; i < MAX_OPERATIONS && m.code.at < m.code.end && !m.code.is_bad; i++) {
		uint8_t op = *m.code.at++;

		if (op >= 0x30 && op < 0x50) /* lit0... */
			push(&m, op - 0x30u);
		else if (op >= 0x70 && op < 0x90) /* breg0... */
			push_register(&m, op - 0x70u, torsh_dwarf_sleb(&m.code));
		else if (!run_constant(&m, op) && !run_binary(&m, op))
			run_other(&m, op);
	}
	*result = pop(&m);
	return m.code.is_bad || m.code.at < m.code.end ? -EINVAL : 0;
}
