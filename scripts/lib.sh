# shellcheck shell=bash
#
# What scripts/demo and scripts/test share: packages, a private copy of
# PostgreSQL to install into, and private servers.  To be sourced by bash.
#
# Everything but Debian's packages goes into one temporary folder, $work,
# which is removed on exit.  Servers run as an unprivileged user, as PostgreSQL
# demands, on a Unix-domain socket and 127.0.0.1 only.

set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

# shellcheck disable=SC2034  # for scripts that source this
# What a change of the account, the protocol or a view breaks first.
core_tests='t/wire_protocol.pl t/wire_drivers.pl t/waits.pl t/transfer.pl t/session_endings.pl '
core_tests+='t/execution_parts.pl t/statements.pl t/clients.pl t/blockers.pl t/privileges.pl'
# shellcheck disable=SC2034
# What is tried besides where sessions load the library.
loading_tests='t/loading.pl t/loading_corners.pl t/poolers.pl t/standby.pl'

say()
{
	printf '\n== %s\n' "$*"
}

die()
{
	printf '%s: %s\n' "$(basename "$0")" "$*" >&2
	exit 1
}

# show_help: the comment at the beginning of the script.
show_help()
{
	sed -n '3,/^$/s/^# \{0,1\}//p' "$0"
}

# as_root COMMAND...: as it is for root, through sudo for others.
as_root()
{
	if [ "$(id -u)" -eq 0 ]; then
		"$@"
	else
		command -v sudo >/dev/null || die "this needs root or sudo: $*"
		sudo "$@"
	fi
}

# need_packages PACKAGE...: installs those that are missing, unless another provides them.
need_packages()
{
	local missing=() package installed

	installed=$(dpkg-query -W -f '${db:Status-Status} ${Package}, ${Provides}\n' |
		sed -n 's/ ([^)]*)//g; s/,//g; s/^installed \(.*\)/ \1 /p')
	for package in "$@"; do
		[[ $installed = *" $package "* ]] || missing+=("$package")
	done
	[ ${#missing[@]} -eq 0 ] && return

	say "Installing packages: ${missing[*]}"
	# stale lists name versions that the mirror no longer has
	as_root apt-get update -qq
	as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq \
		--no-install-recommends "${missing[@]}" >/dev/null
}

# The user that runs servers and tests: the caller, unless that is root.
pick_user()
{
	if [ "$(id -u)" -ne 0 ]; then
		run_user=$(id -un)
	elif id postgres >/dev/null 2>&1; then
		run_user=postgres
	else
		run_user=nobody
	fi
}

# as_user COMMAND...: as that user, with the environment of this script.
as_user()
{
	if [ "$(id -un)" = "$run_user" ]; then
		"$@"
	else
		setpriv --reuid="$run_user" --regid="$(id -g "$run_user")" --clear-groups \
			env HOME="$work" "$@"
	fi
}

# make_work_folder NAME
make_work_folder()
{
	pick_user
	# short, for the sake of socket names
	work=$(mktemp -d "/tmp/$1.XXXXXX")
	chmod 755 "$work"
	[ "$(id -un)" = "$run_user" ] || chown "$run_user" "$work"
}

# Sets "major" to that of the PostgreSQL that apt offers: the distribution's own, or
# the newest of PGDG's archive where that is among apt's sources.
find_major()
{
	local _

	for _ in 1 2; do
		major=$({ LC_ALL=C apt-cache depends postgresql 2>/dev/null || true; } |
			sed -n 's/^ *Depends: postgresql-\([0-9]*\)$/\1/p' | head -n 1)
		[ -z "$major" ] || return 0
		# a fresh machine has not read its sources yet
		as_root apt-get update -qq
	done
	die "apt offers no PostgreSQL; set PG_CONFIG"
}

# The PostgreSQL to use: PG_CONFIG, or Debian's.
find_pg_config()
{
	local candidate

	if [ -z "${PG_CONFIG:-}" ]; then
		for candidate in /usr/lib/postgresql/${major:-*}/bin/pg_config; do
			[ -x "$candidate" ] && PG_CONFIG=$candidate
		done
	fi
	[ -n "${PG_CONFIG:-}" ] || PG_CONFIG=$(command -v pg_config) ||
		die "no pg_config found; set PG_CONFIG"
	[ -f "$("$PG_CONFIG" --pgxs)" ] ||
		die "$PG_CONFIG has no PGXS; install the server's development package"
}

# A private copy of that PostgreSQL, so that installing changes nothing else:
# PostgreSQL finds its files relative to where its programs are.
private_postgres()
{
	local from=$PG_CONFIG dir option

	for option in --bindir --sharedir --pkglibdir; do
		dir=$("$from" $option)
		mkdir -p "$work/pg$dir"
		cp -a "$dir/." "$work/pg$dir/"
	done
	for option in --includedir --pkgincludedir --includedir-server; do
		dir=$("$from" $option)
		mkdir -p "$(dirname "$work/pg$dir")"
		[ -e "$work/pg$dir" ] || ln -s "$dir" "$work/pg$dir"
	done
	# programs may be links to elsewhere, which PostgreSQL would follow
	bindir=$work/pg$("$from" --bindir)
	for dir in "$bindir"/*; do
		[ -L "$dir" ] && cp --remove-destination "$(readlink -f "$dir")" "$dir"
	done
	[ -x "$bindir/pg_config" ] || cp "$(readlink -f "$from")" "$bindir/pg_config"
	[ -x "$bindir/initdb" ] || die "$bindir has no server programs; install the server package"
	export PG_CONFIG=$bindir/pg_config
	export PATH=$bindir:$PATH
}

# What clang must not complain of: flags and attributes of a server that was
# configured with gcc.
compiler_flags()
{
	case "${CC:-}" in
		*clang*)
			echo "-Wno-ignored-optimization-argument -Wno-unknown-warning-option" \
				"-Wno-ignored-attributes -Wno-unused-command-line-argument"
			;;
	esac
}

# Copy the checkout to $work/src, build it there with warnings as errors, and
# install it into the private copy.
build_and_install()
{
	local src=$work/src

	mkdir -p "$src"
	(cd "$root" && tar -c --exclude=.git --exclude='*.o' --exclude='*.so' --exclude='*.bc' .) |
		tar -x -C "$src" --no-same-owner
	[ "$(id -un)" = "$run_user" ] || chown -R "$run_user" "$src"
	as_user make -s -C "$src" -j"$(nproc)" PG_CONFIG="$PG_CONFIG" ${CC:+CC="$CC"} \
		COPT="-Werror $(compiler_flags) ${COPT:-}" with_llvm=no \
		>"$work/build.log" 2>&1 || { cat "$work/build.log"; die "the build failed"; }
	make -s -C "$src" PG_CONFIG="$PG_CONFIG" with_llvm=no install >>"$work/build.log" 2>&1 ||
		{ cat "$work/build.log"; die "the installation failed"; }
	chmod -R a+rX "$work/pg"
}

# start_server NAME [SETTING...]: a private server in $work/NAME; sets PGHOST,
# PGPORT, PGUSER and PGDATABASE.  A random port, because 127.0.0.1 is shared.
start_server()
{
	local name=$1 data=$work/$1 _
	shift

	as_user initdb -D "$data" -U postgres -A trust --no-sync >"$work/initdb.log" 2>&1 ||
		{ cat "$work/initdb.log"; die "initdb failed"; }
	printf '%s\n' \
		"shared_preload_libraries = 'pgnetlat'" \
		"unix_socket_directories = '$work'" \
		"listen_addresses = '127.0.0.1'" \
		"fsync = off" \
		"$@" >>"$data/postgresql.conf"
	for _ in 1 2 3 4 5; do
		PGPORT=$((20000 + RANDOM % 12000))
		if as_user pg_ctl -D "$data" -l "$work/$name.log" -o "-p $PGPORT" -w start \
			>/dev/null 2>&1; then
			export PGPORT PGHOST=$work PGUSER=postgres PGDATABASE=postgres
			return
		fi
	done
	cat "$work/$name.log"
	die "the server did not start"
}

# stop_server NAME
stop_server()
{
	as_user pg_ctl -D "$work/$1" -m fast -w stop >/dev/null 2>&1 || true
}
