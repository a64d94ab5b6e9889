# SPDX-License-Identifier: Apache-2.0 OR MIT
#
# Makes a manual page: awk -v version=V -f page.awk TABLES SOURCE. The source is a page in which these lines are replaced:
#
#	@TITLE NAME SECTION      the title of a page that is no command's
#	@HEAD COMMAND            its title, name and synopsis
#	@DESCRIPTION COMMAND     the description in its --help
#	@OPTIONS COMMAND         its options
#	@COMMANDS                all commands, a line each
#	@VARIABLE NAME DEFAULT   the heading of a variable; the explanation follows in the source
#	@FORMAT NAME             the heading of an export format, and likewise
#	@END_FORMATS             the formats that can be written at the end of a run
#
# Ends with status 1 when a line names what does not exist, or when a page that explains variables or formats lacks one.

function fail(text)
{
	print FILENAME ": " text >"/dev/stderr"
	has_failed = 1
	exit 1
}

# Text as roff: options, variables and `code` in bold.
function roff(text,    out, n, parts, i)
{
	gsub(/\\/, "\\e", text)
	n = split(text, parts, "`")
	out = parts[1]
	for (i = 2; i <= n; i++)
		out = out (i % 2 == 0 ? "\\fB" : "\\fR") parts[i]
	text = out
	out = ""
	while (match(text, /--[a-z][a-z-]*[a-z]|TORSH_PROFILER_[A-Z_]*[A-Z]/)) {
		part = substr(text, RSTART, RLENGTH)
		gsub(/-/, "\\-", part)
		out = out substr(text, 1, RSTART - 1) "\\fB" part "\\fR"
		text = substr(text, RSTART + RLENGTH)
	}
	out = out text
	return out ~ /^[.']/ ? "\\&" out : out
}

function title(name, section, manual)
{
	printf ".TH %s %s \"\" \"torsh %s\" \"%s\"\n", toupper(name), section, version, manual
}

function head(command,    i, text)
{
	if (!(command in summary))
		fail("there is no command " command)
	title("torsh-" command, 1, "User Commands")
	print ".SH NAME\ntorsh\\-" command " \\- " summary[command] "\n.SH SYNOPSIS"
	for (i = 1; i <= n_usages[command]; i++) {
		text = usage[command, i]
		sub(/^torsh [a-z]+ */, "", text)
		if (i > 1)
			print ".br"
		print ".B torsh " command "\n\\&" roff(text)
	}
}

function paragraphs(place, command,    i, is_after_text)
{
	for (i = 1; i <= n_texts[place, command]; i++) {
		if (texts[place, command, i] == "") {
			if (is_after_text)
				print ".PP"
			is_after_text = 0
		} else {
			print roff(texts[place, command, i])
			is_after_text = 1
		}
	}
	return is_after_text
}

function description(command)
{
	print ".SH DESCRIPTION"
	if (paragraphs("before", command) && n_texts["after", command])
		print ".PP"
	paragraphs("after", command)
}

function options(command,    i, long, short)
{
	print ".SH OPTIONS"
	for (i = 1; i <= n_options[command]; i++) {
		long = option_long[command, i]
		short = option_short[command, i]
		if (long == "--help" || long == "--usage")
			continue
		argument = option_argument[command, i]
		sub(/^=/, "", argument)
		gsub(/-/, "\\-", long)
		print ".TP"
		if (short != "-")
			printf "\\fB\\-%s\\fR, ", short
		printf "\\fB%s\\fR", long
		print argument == "-" ? "" : "=\\fI" argument "\\fR"
		print roff(option_text[command, i])
	}
	print ".TP\n\\fB\\-?\\fR, \\fB\\-\\-help\\fR\nList the options.\n.TP\n\\fB\\-\\-usage\\fR\nList them in short."
}

function commands(    i)
{
	for (i = 1; i <= n_commands; i++)
		print ".TP\n.BR torsh\\-" command_names[i] " (1)\n" roff(summary[command_names[i]])
}

function end_formats(    i, list)
{
	for (i = 1; i <= n_formats; i++)
		if (format_when[format_names[i]] == "AT_END")
			list = list (list ? ", " : "") "\\fB" format_names[i] "\\fR"
	return list
}

function variable(name, default_value,    text)
{
	if (!(name in accepted))
		fail("there is no variable " name)
	text = accepted[name] == "format_names" ? "names with commas between: " end_formats() : roff(accepted[name])
	print ".TP\n.B TORSH_PROFILER_" name
	print "Accepts " text ". Default: " roff(default_value) ".\n.br"
	is_explained[name] = 1
}

function format(name)
{
	if (!(name in format_for))
		fail("there is no format " name)
	print ".TP\n.B " name
	print "For " roff(format_for[name]) ". Written as \\fI" roff("NAME" format_ending[name]) "\\fR" \
		(format_when[name] == "AT_END" ? "" : ", by \\fBtorsh export\\fR only") \
		(format_ranks[name] == "BY_RANK" ? "; a file for each rank" : "") ".\n.br"
	is_explained[name] = 1
}

BEGIN { FS = "\t" }

FNR == NR && $1 == "command" { command_names[++n_commands] = $2; summary[$2] = $3; next }
FNR == NR && $1 == "usage" { usage[$2, ++n_usages[$2]] = $3; next }
FNR == NR && ($1 == "before" || $1 == "after") { texts[$1, $2, ++n_texts[$1, $2]] = $3; next }
FNR == NR && $1 == "option" {
	n = ++n_options[$2]
	option_long[$2, n] = $3
	option_short[$2, n] = $4
	option_argument[$2, n] = $5
	option_text[$2, n] = $6
	next
}
FNR == NR && $1 == "variable" { if ($2 != "SESSION") accepted[$2] = $3; next }
FNR == NR && $1 == "format" {
	format_names[++n_formats] = $2
	format_ending[$2] = $4
	format_when[$2] = $5
	format_ranks[$2] = $6
	format_for[$2] = $7
	next
}
FNR == NR { next }

/^@/ {
	split($0, words, " ")
	rest = $0
	sub(/^@[A-Z_]+ *[^ ]* */, "", rest)
	if (words[1] == "@HEAD")
		head(words[2])
	else if (words[1] == "@TITLE")
		title(words[2], words[3], words[3] == 1 ? "User Commands" : words[3] == 5 ? "File Formats" : "Miscellaneous")
	else if (words[1] == "@DESCRIPTION")
		description(words[2])
	else if (words[1] == "@OPTIONS")
		options(words[2])
	else if (words[1] == "@COMMANDS")
		commands()
	else if (words[1] == "@VARIABLE")
		variable(words[2], rest)
	else if (words[1] == "@FORMAT")
		format(words[2])
	else if (words[1] == "@END_FORMATS")
		print end_formats() "."
	else
		fail("not understood: " $0)
	has_variables = has_variables || words[1] == "@VARIABLE"
	has_formats = has_formats || words[1] == "@FORMAT"
	next
}
{ print }

END {
	if (has_failed)
		exit 1
	if (has_variables)
		for (name in accepted)
			if (!(name in is_explained))
				fail("the variable " name " is not explained")
	if (has_formats)
		for (name in format_for)
			if (!(name in is_explained))
				fail("the format " name " is not explained")
}
