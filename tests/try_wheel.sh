#!/bin/sh
# Installs the wheel into an empty environment and uses it as somebody without Rust and without this
# repository would. Arguments: a Python, and the folder of the wheel.
set -eu
python=$1
wheel=$2
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
"$python" -m venv env
env/bin/pip install --quiet --disable-pip-version-check "$wheel"/rampmeter-*.whl
# No compiler, no cargo, nothing of the repository.
unset PYTHONPATH RAMPMETER_EXTENSION RAMPMETER_RAMPD
PATH="$folder/env/bin:/usr/bin:/bin"
export PATH
if command -v cargo >/dev/null; then
	echo "try_wheel: cargo is on the path" >&2
	exit 1
fi

rampmeter --version
rampd --version
test -f env/lib/librampmeter_capton.so
# A program in C is compiled with the header, and linked with the library, of the wheel.
printf '#include <rampmeter.h>\nint main(void) { return rm_failure_text(RM_REFUSED) == 0; }\n' > c.c
cc c.c -o c -Ienv/include -Lenv/lib -lrampmeter_capi -Wl,-rpath,"$folder/env/lib"
./c
test -f env/lib/pkgconfig/rampmeter.pc
# Notices of third parties: in the package's licences, and in the folder of rampd's installation.
test -s env/share/doc/rampmeter/THIRD-PARTY.md
test -s env/lib/python*/site-packages/rampmeter-*.dist-info/licenses/THIRD-PARTY.md
rampmeter examples plans
rampmeter check plans/plans/first.toml | grep -q dcpim
began=$(date +%s)
rampmeter compare plans/plans/first.toml --transports dcpim,phost --seeds 3 --out results/first --quiet
rampmeter papers cosy 2 --quiet
rampmeter papers phost 3 --scale 0.002 --quiet --out results/phost3 | tail -n 3
rampmeter report results --out report.html
echo "a comparison with intervals, two figures and their report: $(($(date +%s) - began)) s"
python -c 'import rampmeter as rm; print(rm.run("plans/plans/first.toml", quiet=True).status)'
