#!/usr/bin/env bash
# Simulates Segstream over recorded links, in the format of Mahimahi: the milliseconds in which 1500 bytes could leave. Public traces are
# in Mahimahi's repository and in that of Pantheon; they are not copied here, as their licences are others.
#
#   examples/recorded_link/run.sh FOLDER          every .txt, .up and .down in it
set -euo pipefail
folder=${1:?give a folder of traces}
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
segstream=$root/target/debug/segstream
[ -x "$segstream" ] || (cd "$root" && cargo build -p segstream-cli)

printf '%-36s %12s %12s %8s\n' trace 'mean Mbit/s' 'goodput' 'of it'
shopt -s nullglob
for trace in "$folder"/*.txt "$folder"/*.up "$folder"/*.down; do
    # As long as half of the trace, at its mean.
    read -r count last < <(awk 'NF { n++; last = $1 } END { print n, last }' "$trace")
    "$segstream" sim segstream --trace "$trace" --rtt 60ms --congestion auto --packet-bytes 1400 --segment-packets 32 --window 64 \
        --packets $((count / 2 + 32)) --json | awk -v name="$(basename "$trace")" -v count="$count" -v last="$last" '
        match($0, /"goodput_bps":[0-9.e+]*/) {
            goodput = substr($0, RSTART + 14, RLENGTH - 14) / 1e6
            mean = count * 1500 * 8 / last / 1000
            printf "%-36s %12.2f %12.2f %7.0f%%\n", name, mean, goodput, 100 * goodput / mean
        }'
done
