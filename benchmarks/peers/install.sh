#!/usr/bin/env bash
# install.sh WORK [GROUP...]: the peers of requirements.txt, or groups of them, in WORK/venv; those of requirements-tfio.txt, which need a
# TensorFlow of their own, in WORK/tfio, if GROUP is tfio. What is there is kept until its versions change. A group that cannot be installed
# leaves its reason in WORK/absent/GROUP, and the others are measured; arrays is needed.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
work=$1
shift
mkdir -p "$work/absent"

groups=("$@")
[ $# -gt 0 ] || mapfile -t groups < <(sed -n 's/^# group //p' "$here/requirements.txt")
for group in "${groups[@]}"; do
	venv=$work/venv
	if [ "$group" = tfio ]; then
		venv=$work/tfio
		wanted=$(grep '^[^#]' "$here/requirements-tfio.txt")
	else
		wanted=$(awk -v g="$group" '/^# group / {on = $3 == g; next} /^[^#]/ && on' "$here/requirements.txt")
	fi
	[ -x "$venv/bin/python" ] || python3 -m venv "$venv"
	[ "$(cat "$venv/installed-$group" 2>/dev/null || true)" != "$wanted" ] || continue
	echo "installing $group" >&2
	rm -f "$work/absent/$group"
	printf '%s\n' "$wanted" >"$work/group.txt"
	if ! "$venv/bin/python" -m pip install -q --disable-pip-version-check -r "$work/group.txt" 2>"$work/pip.log"; then
		{ grep -m1 '^ERROR' "$work/pip.log" || tail -n1 "$work/pip.log"; } >"$work/absent/$group"
	fi
	printf '%s\n' "$wanted" >"$venv/installed-$group"
done
if [ -e "$work/absent/arrays" ]; then
	echo "numpy and Pillow cannot be installed: $(cat "$work/absent/arrays")" >&2
	exit 1
fi
