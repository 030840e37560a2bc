#!/bin/sh
# Builds the example and uses it as somebody outside the repository would. Arguments: the command
# `rampmeter`, and the folder for what is built.
set -eu
rampmeter=$1
CARGO_TARGET_DIR=$2
export CARGO_TARGET_DIR
cd "$(dirname "$0")"
core=$CARGO_TARGET_DIR/debug/libown_transport.so
results=$CARGO_TARGET_DIR/own-transport

cargo test --quiet --locked
cargo build --quiet --locked

"$rampmeter" --core "$core" transports | grep -A 1 stop-and-wait
"$rampmeter" --core "$core" check plan.toml | grep attempts-max
"$rampmeter" --core "$core" run plan.toml --out "$results/run" --quiet
"$rampmeter" --core "$core" plot "$results/run"
"$rampmeter" --core "$core" compare plan.toml --transports stop-and-wait,dcpim,ideal \
	--out "$results/compare" --quiet
"$CARGO_TARGET_DIR/debug/own-rampd" check node.toml
RAMPMETER_CORE="$core" "$(dirname "$rampmeter")/python" tests/same.py
