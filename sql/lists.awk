# Puts lists into the extension's script, so that nothing is listed twice.
#
#	awk -f lists.awk account.columns burst.h thresholds.sql rules/*.sql - <script
#
# In the script, @BURST_...@ is replaced by the constant of that name in burst.h, in
# milliseconds if it ends in _NS.  A line that is only @thresholds@, @verdicts@ or @rules@
# is replaced, too (account.columns says how its columns are named):
#
#	@thresholds@	the columns of figures.sql's "t", from the rows of thresholds.sql
#	@verdicts@	verdicts and their precedence, from the rules' headers
#	@rules@		a row of pgnetlat_rules for each rule: its header and its text
#
# The header of a rule is the comment at its beginning.  Headline, Meaning and Lost may go
# on, indented:
#
#	-- Verdict: chatty
#	-- Precedence: 140
#	-- Headline: makes many round trips for each transaction
#	-- Meaning: five or more round trips per transaction, or rows fetched in small
#	--   portions
#	-- Lost: the round trips
#	--
#
# All but Lost must be there.  A lower precedence comes first; no two rules have the same.
# Numbers that a rule compares with are in thresholds.sql, and read as t.name.

function fail(message)
{
	print "lists.awk: " message >"/dev/stderr"
	failed = 1
	exit 1
}

function literal(string)
{
	gsub(/'/, "''", string)
	return "'" string "'"
}

# What a rule compares with is 0, 1, a unit, or a row of thresholds.sql.
function check_numbers(line,    number)
{
	gsub(/'[^']*'/, "", line)
	sub(/--.*/, "", line)
	while (match(line, /[<>=*\/] *[0-9][0-9.]*(e-?[0-9]+)?/))
	{
		number = substr(line, RSTART, RLENGTH)
		gsub(/[^0-9.e-]/, "", number)
		if (number !~ /^(0|1|100|1000|1400.0|1e-6|1e3|1e6)$/)
			fail(rule ": " number " should be a threshold")
		line = substr(line, RSTART + RLENGTH)
	}
}

# A threshold is read as t.name, so that it is not taken for a column.  Four are columns, too.
function check_names(line,    word)
{
	gsub(/'[^']*'/, "", line)
	sub(/--.*/, "", line)
	while (match(line, /[a-z_.][a-z_.0-9]*/))
	{
		word = substr(line, RSTART, RLENGTH)
		if (word in threshold && word !~ /^(connections|repeats|stopped|think)$/)
			fail(rule ": " word " should be t." word)
		line = substr(line, RSTART + RLENGTH)
	}
}

function end_rule()
{
	if (rule == "")
		return
	if (said["Verdict"] == "" || said["Precedence"] !~ /^[0-9]+$/ || said["Headline"] == "" || said["Meaning"] == "")
		fail(rule ": the header lacks Verdict, Precedence, Headline or Meaning")
	if (index(text, "'" said["Verdict"] "'") == 0)
		fail(rule ": the rule does not give the verdict of its header")
	if (said["Precedence"] in taken)
		fail(rule ": the precedence is that of " taken[said["Precedence"]])
	taken[said["Precedence"]] = rule
	verdicts = verdicts separator "\t\t\t(" literal(said["Verdict"]) ", " said["Precedence"] ")"
	rules = rules separator "\t(" literal(said["Verdict"]) ", " said["Precedence"] ", " literal(said["Headline"]) ", " literal(said["Meaning"]) ", " \
		(said["Lost"] == "" ? "NULL" : literal(said["Lost"])) ", $rule$" text "$rule$)"
	separator = ",\n"
}

FNR == 1 && FILENAME != "-" {
	end_rule()
	rule = FILENAME ~ /rules\/[^\/]*$/ ? FILENAME : ""
	text = key = ""
	split("", said)
	in_header = 1
}

rule != "" && FILENAME != "-" {
	if (text == "" && $0 == "")
		next
	text = text $0 "\n"
	check_numbers($0)
	check_names($0)
	if (!in_header || $0 == "")
		next
	if (match($0, /^-- [A-Z][a-z]+: /))
	{
		key = substr($0, 4, RLENGTH - 5)
		said[key] = substr($0, RLENGTH + 1)
	}
	else if ($0 ~ /^--   / && key != "")
		said[key] = said[key] " " substr($0, 6)
	else
		in_header = 0
	next
}

FILENAME ~ /account\.columns$/ {
	if (match($0, /^\[[a-z]+\]$/))
		group = substr($0, 2, RLENGTH - 2)
	else if ($0 !~ /^(#|$)/)
	{
		split($0, field, "\t")
		members[group] = members[group] " " field[1]
		type[field[1]] = field[2]
		comment[field[1]] = field[3]
	}
	next
}

FILENAME ~ /\.h$/ {
	if ($1 == "#define" && NF == 3)
	{
		sub(/INT64_C/, "", $3)
		gsub(/[^0-9]/, "", $3)
		constants["@" $2 "@"] = $2 ~ /_NS$/ ? $3 / 1e6 : $3
	}
	next
}

FILENAME != "-" {
	if (match($0, /^\t\('[a-z_]+', [0-9@]/))
	{
		name = substr($0, 4, RLENGTH - 7)
		threshold[name]
		thresholds = thresholds (thresholds == "" ? "" : ",\n") "\t\t\t   (v->'" name "')::float8 AS " name
	}
	next
}

FNR == 1 {
	end_rule()
	rule = ""
}

$0 == "@thresholds@" { print thresholds; next }
$0 == "@verdicts@" { print verdicts; next }
$0 == "@rules@" { print rules; next }

# A declaration's columns, or the COMMENTs of a view's.
/^\t?@(OUT|COMMENT) [a-z ]+( OF [a-z_]+)?@$/ {
	gsub(/[\t@]/, "")
	n = split($0, word, " ")
	view = word[1] == "COMMENT" ? word[n] : ""
	for (i = 2; i <= (view == "" ? n : n - 2); i++)
	{
		if (!(word[i] in members))
			fail(word[i] " is not in account.columns")
		columns = split(members[word[i]], column, " ")
		for (j = 1; j <= columns; j++)
			print view == "" ? "\tOUT " column[j] " " type[column[j]] "," \
				: "COMMENT ON COLUMN " view "." column[j] " IS " literal(comment[column[j]]) ";"
	}
	next
}

# Columns by name, of a table if one is given: @parts@, @c.parts@.
{
	while (match($0, /@([a-z]+\.)?[a-z]+@/))
	{
		name = substr($0, RSTART + 1, RLENGTH - 2)
		table = name ~ /\./ ? substr(name, 1, index(name, ".")) : ""
		sub(/.*\./, "", name)
		if (!(name in members))
			break
		names = members[name]
		gsub(/ /, ", " table, names)
		$0 = substr($0, 1, RSTART - 1) substr(names, 3) substr($0, RSTART + RLENGTH)
	}
}

/@BURST_[A-Z_]+@/ {
	match($0, /@BURST_[A-Z_]+@/)
	name = substr($0, RSTART, RLENGTH)
	if (!(name in constants))
		fail(name " is not in burst.h")
	sub(name, constants[name])
}

{ print }

END {
	if (!failed && (thresholds == "" || verdicts == ""))
		fail("there are no thresholds or no rules")
}
