# SPDX-License-Identifier: Apache-2.0 OR MIT
#
# Makes the completions of a shell: awk -v shell=bash|zsh|fish -f completions.awk TABLES.

# What an option's value is completed from: words, or "" for files.
function values(long)
{
	if (long == "--format")
		return formats
	if (long == "--export-format")
		return end_formats
	if (long == "--stacks")
		return "merged python native"
	return ""
}

function quoted(text)
{
	gsub(/'/, "'\\''", text)
	return "'" text "'"
}

# One argument of zsh's _arguments.
function zsh_option(command, j,    text, name)
{
	text = text_of[command, j]
	gsub(/\[|\]|:/, "\\\\&", text)
	name = long_of[command, j]
	if (argument_of[command, j] !~ /^=/)
		return quoted(name "[" text "]")
	return quoted(name "=[" text "]:" substr(name, 3) ":" (values(name) ? "(" values(name) ")" : "_files"))
}

function bash(    i, j, command, words)
{
	print "_torsh()\n{"
	print "\tlocal word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} options='' i"
	print "\tlocal command=${COMP_WORDS[1]}"
	print "\tCOMPREPLY=()"
	print "\tif [ \"$COMP_CWORD\" -eq 1 ]; then"
	print "\t\tmapfile -t COMPREPLY < <(compgen -W '" names " --help --version' -- \"$word\")\n\t\treturn\n\tfi"
	print "\tfor ((i = 2; i < COMP_CWORD; i++)); do"
	print "\t\t[ \"${COMP_WORDS[i]}\" != -- ] || { mapfile -t COMPREPLY < <(compgen -c -f -- \"$word\"); return; }\n\tdone"
	print "\t# \"=\" is a word of its own."
	print "\tif [ \"$word\" = = ]; then\n\t\tword=\n\telif [ \"$before\" = = ]; then"
	print "\t\tbefore=${COMP_WORDS[COMP_CWORD-2]}\n\tfi"
	print "\tcase $before in"
	for (long in has_values)
		print "\t" long ") mapfile -t COMPREPLY < <(compgen -W '" values(long) "' -- \"$word\"); return ;;"
	print "\tesac\n\tcase $command in"
	for (i = 1; i <= n_commands; i++) {
		command = command_names[i]
		words = ""
		for (j = 1; j <= n_options[command]; j++)
			words = words (j > 1 ? " " : "") long_of[command, j] (argument_of[command, j] ~ /^=/ ? "=" : "")
		print "\t" command ") options='" words "' ;;"
	}
	print "\tesac\n\tcase $word in"
	print "\t-*)\n\t\tmapfile -t COMPREPLY < <(compgen -W \"$options\" -- \"$word\")"
	print "\t\t[[ ${COMPREPLY[0]-} != *= ]] || compopt -o nospace\n\t\t;;"
	print "\t*) mapfile -t COMPREPLY < <(compgen -f -- \"$word\") ;;\n\tesac\n}"
	print "complete -o filenames -F _torsh torsh"
}

function zsh(    i, j, command)
{
	print "_torsh()\n{\n\tlocal -a commands\n\tcommands=("
	for (i = 1; i <= n_commands; i++)
		print "\t\t" quoted(command_names[i] ":" summary[command_names[i]])
	print "\t)\n\tif ((CURRENT == 2)); then\n\t\t_describe command commands\n\t\treturn\n\tfi"
	print "\tlocal command=$words[2]\n\tshift words\n\t((CURRENT--))\n\tcase $command in"
	for (i = 1; i <= n_commands; i++) {
		command = command_names[i]
		print "\t" command ")\n\t\t_arguments -S \\"
		for (j = 1; j <= n_options[command]; j++)
			print "\t\t\t" zsh_option(command, j) " \\"
		print "\t\t\t" (command == "run" ? "'*::program:_normal'" : "'*:recording:_files'") "\n\t\t;;"
	}
	print "\tesac\n}\n_torsh \"$@\""
}

function fish(    i, j, command, flags)
{
	print "complete -c torsh -n __fish_use_subcommand -f"
	for (i = 1; i <= n_commands; i++) {
		command = command_names[i]
		print "complete -c torsh -n __fish_use_subcommand -f -a " command " -d " quoted(summary[command])
		for (j = 1; j <= n_options[command]; j++) {
			flags = argument_of[command, j] ~ /^=/ ? " -r" : ""
			if (values(long_of[command, j]))
				flags = " -x -a " quoted(values(long_of[command, j]))
			print "complete -c torsh -n '__fish_seen_subcommand_from " command "' -l " substr(long_of[command, j], 3) \
				(short_of[command, j] ~ /^[a-z]/ ? " -s " short_of[command, j] : "") flags \
				" -d " quoted(text_of[command, j])
		}
	}
}

BEGIN { FS = "\t" }
$1 == "command" { command_names[++n_commands] = $2; summary[$2] = $3; names = names (names ? " " : "") $2 }
$1 == "option" {
	n = ++n_options[$2]
	long_of[$2, n] = $3
	short_of[$2, n] = $4
	argument_of[$2, n] = $5
	text_of[$2, n] = $6
	if ($3 ~ /^--(format|export-format|stacks)$/)
		has_values[$3] = 1
}
$1 == "format" {
	formats = formats (formats ? " " : "") $2
	if ($5 == "AT_END")
		end_formats = end_formats (end_formats ? " " : "") $2
}

END {
	if (shell == "zsh")
		print "#compdef torsh"
	print "# Made from the tables of torsh by tools/man/generate/completions.awk."
	if (shell == "bash")
		bash()
	else if (shell == "zsh")
		zsh()
	else
		fish()
}
