#!/usr/bin/env bash
# How much of two bare processes two workers of Dask reach: scaling.py says how it is measured. Run run.sh dask before, which installs Dask.
#
#   examples/sweeps/scaling.sh [GRID] [ROUNDS] [SHARDS]        without GRID the one beside this file, with four times the packets
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)
work=$root/target/sweeps
grid=${1:-}
# Why as many shards as scenarios: at the end one worker has nothing to do until the other is done with its shard.
rounds=${2:-5} shards=${3:-24}
PATH=$root/target/release:$work/venv/bin:$PATH
[ -x "$work/venv/bin/python" ] || { echo "Dask is not installed here; run examples/sweeps/run.sh dask first" >&2; exit 1; }
[ -z "$grid" ] || [ -f "$grid" ] || { echo "there is no grid $grid; name a file as grid.toml beside this script" >&2; exit 1; }
[ -x "$root/target/release/segstream" ] || (cd "$root" && cargo build --release -p segstream-cli)
rm -rf "$work/scaling" && mkdir -p "$work/scaling"
if [ -z "$grid" ]; then
    grid=$work/scaling/grid.toml
    sed 's/^packets = .*/packets = 400_000/' "$here/grid.toml" > "$grid"
fi
python "$here/scaling.py" "$grid" "$work/scaling" "$rounds" "$shards"
