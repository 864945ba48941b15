#!/usr/bin/env bash
# How much of two bare processes two workers of Dask reach, on a machine that does nothing else: the bare ones run the whole grid each, at
# once; the workers share it. The start of the workers, some seconds, is told apart. Run run.sh dask before, which installs Dask.
#
#   examples/sweeps/scaling.sh [GRID] [SHARDS]        without GRID the one beside this file, with eight times the packets
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)
work=$root/target/sweeps
grid=${1:-}
shards=${2:-16}
PATH=$root/target/release:$work/venv/bin:$PATH
[ -x "$root/target/release/segstream" ] || (cd "$root" && cargo build --release -p segstream-cli)
rm -rf "$work/scaling" && mkdir -p "$work/scaling/dask"
if [ -z "$grid" ]; then
    grid=$work/scaling/grid.toml
    sed 's/^packets = .*/packets = 800_000/' "$here/grid.toml" > "$grid"
fi

now() { date +%s.%N; }
whole() { segstream sim sweep "$grid" --threads 1 --out "$work/scaling/$1" 2>/dev/null; }
began=$(now)
whole one && between=$(now)
whole first & whole second & wait
bare=$(now)
python "$here/dask_shards.py" "$grid" "$work/scaling/dask" "$shards" 2> "$work/scaling/dask.log"
ended=$(now)
cmp "$work/scaling/one/results.csv" "$work/scaling/dask/results.csv"
shared=$(sed -n 's/^.* shards took \(.*\) s$/\1/p' "$work/scaling/dask.log")
awk -v a="$began" -v b="$between" -v c="$bare" -v d="$ended" -v s="$shared" 'BEGIN {
    printf "one process %.1f s; two bare processes, each the whole: %.1f s; two workers: %.1f s, and %.1f s to start and to merge\n",
        b - a, c - b, s, d - c - s
    printf "two workers are %.2f times one process, and %.2f of two bare processes\n", (b - a) / s, (c - b) / 2 / s
}'
