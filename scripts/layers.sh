# shellcheck shell=bash disable=SC2034
#
# What scripts/test-majors, scripts/test-packages and scripts/test-compilers
# share: root directories of Debian releases, and throw-away layers over them.
# To be sourced by bash; its user must be root.
#
# Everything is kept in one folder, $cache.  A root directory is made once and
# never changed; what runs in it runs in a layer over it, in a mount namespace
# of its own.  Such a layer is thrown away, unless it is one of packages that
# are to be there the next time.

cache=${PGNETLAT_MAJORS_DIR:-/var/cache/pgnetlat-majors}
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
source_dir=$root

# Sets "codename" of this machine's release and "uri" of the mirror it comes from.
find_mirror()
{
	local try

	# shellcheck disable=SC1091
	codename=$(. /etc/os-release && echo "${VERSION_CODENAME:-}")
	for try in 1 2; do
		# shellcheck disable=SC2016  # apt expands these
		uri=$(apt-get indextargets --format '$(RELEASE) $(COMPONENT) $(REPO_URI)' 'Created-By: Packages' |
			awk -v codename="$codename" '
				$2 == "main" && ($1 == codename || $1 == "stable" || $1 == "testing") { print $3; exit }')
		[[ -z $uri ]] || return 0
		# apt knows its sources only once it has read them
		apt-get update -qq
	done
	die "found no Debian mirror in apt's sources"
}

# Copies the checkout without anything that was built in it.
copy_source()
{
	local files=(find . -type f -print0)

	cd "$source_dir" || return
	if git -c safe.directory='*' rev-parse --git-dir >/dev/null 2>&1; then
		files=(git -c safe.directory='*' ls-files -z --cached --others --exclude-standard)
	fi
	"${files[@]}" |
		tar --create --ignore-failed-read --warning=no-failed-read \
			--exclude='*.o' --exclude='*.so' --exclude='*.bc' --exclude=.git --null --files-from=- |
		tar --extract --no-same-owner --directory "$1"
	rm -rf "$1"/{results,tmp_check,regression.diffs,regression.out}
}

# mount_layer BASE SCRATCH [KEPT]: puts a layer over a root directory and sets
# "tree" to where it is.  To be called in a mount namespace of its own.
mount_layer()
{
	local base=$1 scratch=$2 kept=${3:-$2}

	mount -t tmpfs -o mode=755 tmpfs "$scratch"
	tree=$scratch/tree
	mkdir "$tree"
	mkdir -p "$kept"/{upper,work}
	mount -t overlay -o "lowerdir=$base,upperdir=$kept/upper,workdir=$kept/work" overlay "$tree"
	mount -t proc proc "$tree/proc"
	mount --rbind /dev "$tree/dev"
	mount -t tmpfs -o mode=1777 tmpfs "$tree/dev/shm"
	mount -t tmpfs -o mode=1777 tmpfs "$tree/tmp"
	mkdir "$tree/tmp/build"
	printf '127.0.0.1 localhost\n::1 localhost\n' >"$tree/etc/hosts"
}

# in_layer BASE KEPT EXCHANGE COMMAND...: runs a command in a layer over BASE.
# It finds a copy of the checkout in /tmp/build, which is its folder, and the
# folder EXCHANGE in /tmp/exchange.  No services are started there.
in_layer()
{
	unshare --mount --pid --fork --kill-child bash -euo pipefail -c \
		"$(declare -p source_dir); $(declare -f copy_source mount_layer inside_layer); inside_layer \"\$@\"" \
		in_layer "$cache/mnt" "$@"
}

inside_layer()
{
	local scratch=$1 base=$2 kept=$3 exchange=$4
	shift 4

	mount_layer "$base" "$scratch" "$kept"
	cp -L --remove-destination /etc/resolv.conf "$tree/etc/resolv.conf"
	printf '#!/bin/sh\nexit 101\n' >"$tree/usr/sbin/policy-rc.d"
	chmod 755 "$tree/usr/sbin/policy-rc.d"
	mkdir "$tree/tmp/exchange"
	mount --bind "$exchange" "$tree/tmp/exchange"
	(copy_source "$tree/tmp/build")
	chroot "$tree" /usr/bin/env -i -C /tmp/build LANG=C.UTF-8 TZ=UTC HOME=/tmp \
		DEBIAN_FRONTEND=noninteractive PATH=/usr/local/bin:/usr/bin:/usr/sbin:/bin:/sbin "$@"
}

# release_root [CODENAME]: makes a minimal root directory of this machine's release,
# or of another one that its mirror has, once; sets "release".
release_root()
{
	local architecture name lock codename uri

	find_mirror
	codename=${1:-$codename}
	architecture=$(dpkg --print-architecture)
	name=$codename-$architecture
	release=$cache/$name
	exec {lock}>"$release.lock"
	flock "$lock"
	if [[ -e $release/.complete ]]; then
		exec {lock}>&-
		return
	fi
	echo "$(basename "$0"): fetching a minimal $name (once, less than a minute)" >&2
	need_packages mmdebstrap
	rm -rf "$release"
	mmdebstrap --mode=root --variant=apt --format=directory \
		--architectures="$architecture" --skip=check/qemu \
		--aptopt='Acquire::Check-Valid-Until "false"' \
		"$codename" "$release" "deb $uri $codename main" >"$cache/$name.log" 2>&1 ||
		{ tail -n 20 "$cache/$name.log" >&2; die "could not make $release"; }
	touch "$release/.complete"
	exec {lock}>&-
}

# kept_layer NAME BASE PACKAGE...: BASE with packages, installed once; sets
# "layer" to what stands for both.
kept_layer()
{
	local name=$1 base=$2 kept=$cache/layer-$1 key lock
	shift 2

	exec {lock}>"$kept.lock"
	flock "$lock"
	key="$(stat --format='%i %Y' "$base/.complete") $*"
	layer=$kept/upper:$base
	if [[ $(cat "$kept/key" 2>/dev/null) != "$key" ]]; then
		fill_layer "$name" "$base" "$kept" "$@"
		echo "$key" >"$kept/key"
	fi
	exec {lock}>&-
}

fill_layer()
{
	local name=$1 base=$2 kept=$3
	shift 3

	echo "$(basename "$0"): installing packages: $*" >&2
	rm -rf "$kept"
	mkdir -p "$kept"
	# shellcheck disable=SC2016  # the inner shell expands $@
	in_layer "$base" "$kept" "$cache/log" sh -euc '
		apt-get update -qq
		mkdir -p /etc/postgresql-common
		echo "create_main_cluster = false" >/etc/postgresql-common/createcluster.conf
		apt-get install -qq -y --no-install-recommends -o Dpkg::Options::=--force-unsafe-io "$@"
		apt-get clean' kept_layer "$@" >"$cache/$name.log" 2>&1 ||
		{ tail -n 20 "$cache/$name.log" >&2; die "could not install packages, see $cache/$name.log"; }
}
