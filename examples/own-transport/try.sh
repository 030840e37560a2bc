#!/bin/sh
# Builds the example and uses it as somebody outside the repository would. Arguments: the command
# `rampmeter`, and the folder for what is built.
set -eu
rampmeter=$1
CARGO_TARGET_DIR=$2
export CARGO_TARGET_DIR
cd "$(dirname "$0")"
library=$CARGO_TARGET_DIR/debug/libown_transport.so
results=$CARGO_TARGET_DIR/own-transport

cargo test --quiet --locked
cargo build --quiet --locked

"$rampmeter" --extension "$library" transports | grep -A 1 stop-and-wait
"$rampmeter" --extension "$library" check plan.toml | grep attempts-max
"$rampmeter" --extension "$library" run plan.toml --out "$results/run" --quiet
"$rampmeter" --extension "$library" plot "$results/run"
"$rampmeter" --extension "$library" compare plan.toml --transports stop-and-wait,dcpim,ideal \
	--out "$results/compare" --quiet
"$CARGO_TARGET_DIR/debug/own-rampd" check node.toml
RAMPMETER_EXTENSION="$library" "$(dirname "$rampmeter")/python" tests/same.py
