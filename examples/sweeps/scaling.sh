#!/usr/bin/env bash
# How much of two bare processes two workers of Dask reach, on a machine that does nothing else: the bare ones run the whole grid each, at
# once; the workers share it. Run run.sh dask before, which installs Dask.
#
#   examples/sweeps/scaling.sh [GRID] [SHARDS]
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)
work=$root/target/sweeps
grid=${1:-$here/grid.toml}
shards=${2:-16}
PATH=$root/target/release:$work/venv/bin:$PATH
(cd "$root" && cargo build --release -p segstream-cli)
rm -rf "$work/scaling" && mkdir -p "$work/scaling/dask"

now() { date +%s.%N; }
whole() { segstream sim sweep "$grid" --threads 1 --out "$work/scaling/$1" 2>/dev/null; }
began=$(now)
whole one && between=$(now)
whole first & whole second & wait
bare=$(now)
python "$here/dask_shards.py" "$grid" "$work/scaling/dask" "$shards" 2>/dev/null
ended=$(now)
cmp "$work/scaling/one/results.csv" "$work/scaling/dask/results.csv"
awk -v a="$began" -v b="$between" -v c="$bare" -v d="$ended" 'BEGIN {
    printf "one process %.1f s; two bare processes, each the whole: %.1f s; two workers: %.1f s\n", b - a, c - b, d - c
    printf "two workers are %.2f times one process, and %.2f of two bare processes\n", (b - a) / (d - c), (c - b) / 2 / (d - c)
}'
