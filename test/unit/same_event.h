/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Two events are the same, field by field. Behind cmocka.h. */
#ifndef TORSH_TEST_SAME_EVENT_H
#define TORSH_TEST_SAME_EVENT_H

#include "agent/wire/event.h"

static inline void expect_same_event(const struct event *a, const struct event *b)
{
	assert_int_equal(a->id, b->id);
	switch (a->id) {
#define EVENT(number, NAME, name, text) \
	case number: {                  \
		const struct event_##name *x = &a->name, *y = &b->name;
#define FIELD(type, name) assert_true(x->name == y->name);
#define END(NAME) \
	break;    \
	}
#include "agent/wire/events.def"
#undef EVENT
#undef FIELD
#undef END
	default:
		fail();
	}
}

#endif
