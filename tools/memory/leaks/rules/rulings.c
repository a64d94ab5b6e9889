/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/memory/leaks/rules/rulings.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "agent/wire/channel.h"
#include "tools/base/die.h"
#include "tools/frames/stack_path.h"

#define NO_RULE -1L
/* What is kept by address: 0 is not looked up yet. */
#define KEPT_RULE(rule) ((int32_t)(rule) + 2)
#define RULE_KEPT(kept) ((long)(kept)-2)

static long find_text(const struct rules *rules, enum suppress_kind kind, const char *text)
{
	return torsh_suppress_find(rules->suppress, kind, rules->process->number, text);
}

static bool is_word(char c)
{
	return isalnum((unsigned char)c) || c == '_';
}

/*
 * Returns the longest run of letters of a pattern, which the caller frees: a mangled name has it
 * too, if the demangled one matches. NULL for rules that are not built in: their patterns may match
 * what only demangled names have.
 */
static char *word_of(const struct suppress_rule *rule)
{
	const char *longest = rule->pattern;
	size_t n_longest = 0;

	if (!rule->is_built_in)
		return NULL;
	for (const char *at = rule->pattern; *at; at++) {
		size_t n = 0;

		while (is_word(at[n]))
			n++;
		if (n > n_longest) {
			longest = at;
			n_longest = n;
		}
		at += n - (n != 0);
	}
	return n_longest ? torsh_need(strndup(longest, n_longest)) : NULL;
}

/* Returns false if no rule of the kind matches the name, or what it is demangled to. */
static bool may_match(const struct rules *rules, enum suppress_kind kind, const char *name)
{
	for (size_t i = 0; name && i < rules->suppress->n; i++) {
		const struct suppress_rule *rule = &rules->suppress->rules[i];

		if (rule->kind == kind &&
		    (!rule->process || rule->process == rules->process->number) &&
		    (!rules->words[i] || strstr(name, rules->words[i])))
			return true;
	}
	return false;
}

static long find_rule(const struct rules *rules, enum suppress_kind kind, const struct frame *frame)
{
	long rule = find_text(rules, kind, frame->function);
	char *both;

	if (rule < 0)
		rule = find_text(rules, kind, frame->file);
	if (rule >= 0 || !frame->is_python || !frame->file || !frame->function)
		return rule;
	both = torsh_need_text("%s:%s", frame->file, frame->function);
	rule = find_text(rules, kind, both);
	free(both);
	return rule;
}

static long rule_of_module(struct rules *rules, enum suppress_kind kind, uint32_t address)
{
	const struct recorded_module *module = torsh_recording_module(rules->process, address);
	int32_t *known;

	if (!module)
		return NO_RULE;
	known = &rules->kept[kind].of_modules[module - rules->process->tables->modules];
	if (!*known)
		*known = KEPT_RULE(find_text(rules, kind, module->path));
	return RULE_KEPT(*known);
}

static long find_name(const struct rules *rules, enum suppress_kind kind, const char *name,
		      const char **demangled)
{
	long rule;

	if (!may_match(rules, kind, name))
		return NO_RULE;
	rule = find_text(rules, kind, name);
	if (rule >= 0 || kind == SUPPRESS_WITHIN)
		return rule;
	if (!*demangled)
		*demangled = torsh_symbols_demangle(rules->symbols, name);
	return find_text(rules, kind, *demangled);
}

/* The rule of an address's name; names in the recording are of many addresses. */
static long rule_of_name(struct rules *rules, enum suppress_kind kind, uint32_t address,
			 const char *name)
{
	const struct recorded_tables *tables = rules->process->tables;
	uint32_t symbol = tables->addresses[address].symbol;
	const char *demangled = NULL;
	int32_t *known;

	if (symbol >= tables->n_symbols || name != tables->symbols[symbol])
		return find_name(rules, kind, name, &demangled);
	known = &rules->kept[kind].of_symbols[symbol];
	if (!*known)
		*known = KEPT_RULE(find_name(rules, kind, name, &rules->demangled[symbol]));
	return RULE_KEPT(*known);
}

/* The rule of a line of Python: lines of a function have one. */
static long rule_of_line(struct rules *rules, enum suppress_kind kind, uint32_t address)
{
	const struct recorded_function *function =
		torsh_recording_function(rules->process, address);
	struct frame frame = {.is_python = true};
	int32_t *known;

	if (!function)
		return NO_RULE;
	frame.function = function->name;
	frame.file = function->file;
	known = &rules->kept[kind].of_functions[function - rules->process->tables->functions];
	if (!*known)
		*known = KEPT_RULE(may_match(rules, kind, frame.function) ||
						   may_match(rules, kind, frame.file)
					   ? find_rule(rules, kind, &frame)
					   : NO_RULE);
	return RULE_KEPT(*known);
}

/* Returns whether DWARF may have a name or a file of the address that a rule of the kind names. */
static bool asks_dwarf(struct rules *rules, enum suppress_kind kind, uint32_t address,
		       const char *name)
{
	if (rules->has_own[kind])
		return true;
	return !name || rule_of_name(rules, SUPPRESS_WITHIN, address, name) >= 0;
}

/*
 * Returns the rule for an address: by the recorded names first, by DWARF's only if these match
 * none.
 */
static long rule_of_address(struct rules *rules, enum suppress_kind kind, uint32_t address)
{
	long rule = rule_of_module(rules, kind, address);
	const struct frames *frames;
	const char *name;
	bool is_named;

	if (rules->is_nameless[address])
		return rule;
	name = torsh_symbols_name(rules->symbols, rules->process, address);
	if (rule < 0)
		rule = rule_of_name(rules, kind, address, name);
	if (rule < 0 && rules->process->tables->addresses[address].flags == ADDRESS_PYTHON)
		return rule_of_line(rules, kind, address);
	if (rule >= 0 || !asks_dwarf(rules, kind, address, name))
		return rule;
	frames = torsh_symbols_frames(rules->symbols, rules->process, address);
	is_named = name;
	for (size_t i = 0; rule < 0 && i < frames->n; i++) {
		is_named = is_named || frames->frames[i].function || frames->frames[i].file;
		rule = find_rule(rules, kind, &frames->frames[i]);
	}
	rules->is_nameless[address] = !is_named;
	return rule;
}

static long match_address(struct rules *rules, enum suppress_kind kind, uint32_t address)
{
	int32_t *known = &rules->kept[kind].of_addresses[address];

	if (!*known)
		*known = KEPT_RULE(rule_of_address(rules, kind, address));
	return RULE_KEPT(*known);
}

/* What is known of a caller, from the outermost frame on. */
struct ruled_caller {
	int32_t rule; /* of the kind SUPPRESS_LEAK, of the innermost frame that has one; or none */
	/*
	 * Of the kinds SUPPRESS_KEPT and SUPPRESS_IMPORT, looked up if has_inner: these match only
	 * frames inside of the innermost line of Python, of own code, and of the frame that has
	 * `rule`. A frame with one of the former ends the search for the latter.
	 */
	int32_t kept, imported;
	uint32_t import; /* the stack of the innermost import; 0: none */
	bool is_repeated; /* one of its imports ran again */
	bool has_inner;
};

struct ruling_finder {
	struct rules *rules;
	struct stack_path path;
	struct ruled_caller *callers; /* by depth */
	bool *is_plain; /* by address: what is known of its caller is known of it */
};

/* Returns what is known of a stack from what is known of its caller. */
static struct ruled_caller next_caller(struct ruling_finder *finder, struct ruled_caller caller,
				       uint32_t stack)
{
	struct rules *rules = finder->rules;
	const struct recorded_tables *tables = rules->process->tables;
	uint32_t address = tables->stacks[stack].address;
	long rule;

	if (address >= tables->n_addresses || finder->is_plain[address])
		return caller;
	rule = match_address(rules, SUPPRESS_LEAK, address);
	if (rule >= 0)
		caller.rule = (int32_t)rule;
	if (torsh_address_is_import(rules->kinds, address)) {
		caller.import = stack;
		caller.is_repeated = caller.is_repeated ||
				     (rules->runs->is_repeated && rules->runs->is_repeated[stack]);
	}
	caller.has_inner = rule >= 0 || tables->addresses[address].flags == ADDRESS_PYTHON ||
			   torsh_address_kind(rules->kinds, address) == FRAME_OWN;
	if (caller.has_inner)
		caller.kept = caller.imported = NO_RULE;
	return caller;
}

/* Look up the rules that match only the innermost frames, of the last stack. */
static void find_inner(struct ruling_finder *finder)
{
	struct rules *rules = finder->rules;
	const struct recorded_tables *tables = rules->process->tables;
	size_t depth = finder->path.depth;

	while (!finder->callers[depth].has_inner)
		depth--;
	while (depth++ < finder->path.depth) {
		struct ruled_caller *caller = &finder->callers[depth];
		uint32_t address = tables->stacks[finder->path.stacks[depth]].address;
		long kept = NO_RULE, imported = NO_RULE;

		if (address < tables->n_addresses) {
			kept = match_address(rules, SUPPRESS_KEPT, address);
			imported = match_address(rules, SUPPRESS_IMPORT, address);
			finder->is_plain[address] = kept < 0 && imported < 0 &&
						    !torsh_address_is_import(rules->kinds, address);
		}
		caller->has_inner = true;
		caller->kept = kept < 0 ? caller[-1].kept : (int32_t)kept;
		caller->imported =
			kept < 0 && imported < 0 ? caller[-1].imported : (int32_t)imported;
	}
}

static struct ruling rule_of_stack(struct ruling_finder *finder, uint32_t stack)
{
	struct stack_path *path = &finder->path;
	const struct ruled_caller *caller;
	int32_t rule;

	for (size_t i = torsh_stack_path_take(path, stack); i <= path->depth; i++)
		finder->callers[i] = next_caller(finder, finder->callers[i - 1], path->stacks[i]);
	find_inner(finder);
	caller = &finder->callers[path->depth];
	rule = caller->kept >= 0 ? caller->kept : caller->rule;
	if (rule >= 0 || !caller->import)
		return (struct ruling){.rule = rule};
	return (struct ruling){.rule = caller->is_repeated ? NO_RULE : caller->imported,
			       .import = caller->import};
}

void torsh_rules_start(struct rules *rules)
{
	const struct recorded_tables *tables = rules->process->tables;

	for (int kind = 0; kind < N_SUPPRESS_KINDS; kind++) {
		rules->has_own[kind] = torsh_suppress_has_own(
			rules->suppress, (enum suppress_kind)kind, rules->process->number);
		rules->kept[kind] = (struct kept_rules){
			.of_addresses =
				torsh_need_items(NULL, 0, tables->n_addresses, sizeof(int32_t)),
			.of_modules = torsh_need_items(NULL, 0, tables->n_modules, sizeof(int32_t)),
			.of_symbols = torsh_need_items(NULL, 0, tables->n_symbols, sizeof(int32_t)),
			.of_functions =
				torsh_need_items(NULL, 0, tables->n_functions, sizeof(int32_t)),
		};
	}
	rules->demangled = torsh_need_items(NULL, 0, tables->n_symbols, sizeof(*rules->demangled));
	rules->is_nameless =
		torsh_need_items(NULL, 0, tables->n_addresses, sizeof(*rules->is_nameless));
	rules->words = torsh_need_items(NULL, 0, rules->suppress->n, sizeof(*rules->words));
	for (size_t i = 0; i < rules->suppress->n; i++)
		rules->words[i] = word_of(&rules->suppress->rules[i]);
}

static void end_sums(struct rules *rules)
{
	torsh_sparse_array_destroy(&rules->import_bytes);
	free(rules->kept_bytes);
}

static void start_sums(struct rules *rules)
{
	end_sums(rules);
	torsh_sparse_array_create(&rules->import_bytes, sizeof(uint64_t));
	rules->kept_bytes =
		torsh_need_items(NULL, 0, rules->suppress->n, sizeof(*rules->kept_bytes));
}

void torsh_rules_end(struct rules *rules)
{
	for (int kind = 0; kind < N_SUPPRESS_KINDS; kind++) {
		free(rules->kept[kind].of_addresses);
		free(rules->kept[kind].of_modules);
		free(rules->kept[kind].of_symbols);
		free(rules->kept[kind].of_functions);
	}
	for (size_t i = 0; rules->words && i < rules->suppress->n; i++)
		free(rules->words[i]);
	free(rules->words);
	free(rules->is_nameless);
	free(rules->demangled);
	end_sums(rules);
}

/* Count what the rule of a site would suppress. */
static void add_bytes(struct rules *rules, const struct ruling *ruling,
		      const struct allocation_site *site)
{
	torsh_stack_bytes_add(&rules->import_bytes, ruling->import, site->bytes);
	if (rules->suppress->rules[ruling->rule].kind == SUPPRESS_KEPT)
		rules->kept_bytes[ruling->rule] += site->bytes;
}

struct ruling *torsh_rulings_find(struct rules *rules, const struct site_reader *sites)
{
	struct ruling *rulings = torsh_need_items(NULL, 0, sites->n, sizeof(*rulings));
	struct ruling_finder finder = {
		.rules = rules,
		.callers = torsh_need_items(NULL, 0, STACK_PATH_ROOM, sizeof(*finder.callers)),
		.is_plain = torsh_need_items(NULL, 0, rules->process->tables->n_addresses,
					     sizeof(*finder.is_plain)),
	};

	finder.callers[0] = (struct ruled_caller){NO_RULE, NO_RULE, NO_RULE, 0, false, true};
	start_sums(rules);
	torsh_stack_path_start(&finder.path, rules->process);
	for (size_t i = 0; i < sites->n; i++) {
		struct allocation_site site;

		rulings[i] = rule_of_stack(&finder, torsh_site_reader_stack(sites, i));
		if (rulings[i].rule < 0)
			continue;
		site = torsh_site_reader_at(sites, i);
		add_bytes(rules, &rulings[i], &site);
	}
	torsh_stack_path_end(&finder.path);
	free(finder.callers);
	free(finder.is_plain);
	return rulings;
}

bool torsh_ruling_holds(const struct rules *rules, const struct ruling *ruling)
{
	return ruling->rule >= 0 && rules->kept_bytes[ruling->rule] <= LEAKS_KEPT_BYTES &&
	       (!ruling->import ||
		torsh_stack_bytes_at(&rules->import_bytes, ruling->import) <= LEAKS_KEPT_BYTES);
}
