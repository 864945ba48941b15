#!/usr/bin/env bash
# Shows what an operator sees, on one machine: Prometheus from its package, a receiver, a link with loss and a sender that sends the same
# file again and again, each with its metrics. Ctrl-C ends all of them; SEGSTREAM names the program if it is not in PATH.
#
#     observing/start.sh [SECONDS]
#
# Then open http://127.0.0.1:9090/graph, or import observing/grafana-dashboard.json into a Grafana with this Prometheus as a source.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
segstream=${SEGSTREAM:-segstream}
say() { printf '%s\n' "$*" >&2; }

if ! command -v prometheus >/dev/null; then
    say "prometheus is not installed; on Debian and Ubuntu: apt install --no-install-recommends prometheus"
    exit 1
fi
if ! command -v "$segstream" >/dev/null; then
    say "$segstream is not found; name the program with SEGSTREAM=PATH"
    exit 1
fi

folder=$(mktemp -d)
processes=()
end() {
    trap - EXIT INT TERM
    for process in "${processes[@]}"; do kill -TERM "$process" 2>/dev/null || true; done
    wait || true
    rm -rf "$folder"
}
trap end EXIT
trap 'exit 0' INT TERM

# The sender's file, of which nothing is written at the receiver: without --out it only counts.
head -c 20000000 /dev/urandom >"$folder/sample.bin"
"$segstream" recv --listen 127.0.0.1:9901 --insecure --keep --metrics 127.0.0.1:9911 2>"$folder/recv.log" &
processes+=($!)
"$segstream" link --listen 127.0.0.1:9902 --to 127.0.0.1:9901 --bandwidth 20mbit --rtt 40ms --loss gilbert:rate=1%,burst=3 \
    --metrics 127.0.0.1:9913 2>"$folder/link.log" &
processes+=($!)
prometheus --config.file "$here/prometheus.yml" --storage.tsdb.path "$folder/prometheus" --web.listen-address 127.0.0.1:9090 \
    2>"$folder/prometheus.log" &
processes+=($!)
say "Prometheus: http://127.0.0.1:9090/graph, metrics: http://127.0.0.1:9911/metrics and 9912, 9913; Ctrl-C ends it"

until=$((SECONDS + ${1:-86400}))
while [ "$SECONDS" -lt "$until" ]; do
    for process in "${processes[@]}"; do
        if ! kill -0 "$process" 2>/dev/null; then
            say "one of the programs has ended:"
            tail -n 3 "$folder"/*.log >&2
            exit 1
        fi
    done
    "$segstream" send 127.0.0.1:9902 "$folder/sample.bin" --insecure --tolerance 64,4,2 --metrics 127.0.0.1:9912 2>>"$folder/send.log" &
    sender=$!
    while kill -0 "$sender" 2>/dev/null && [ "$SECONDS" -lt "$until" ]; do sleep 1; done
    kill -INT "$sender" 2>/dev/null || true
    wait "$sender" || true
done
