#!/usr/bin/env bash
# Runs the grid in one process and on every engine that is here, and compares the hashes of the results. Names what it has run and what it
# has not. Python's engines are installed in target/sweeps.
#
#   examples/sweeps/run.sh [dask] [snakemake] [slurm] [jobqueue]        all of them without a name
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)
work=$root/target/sweeps
engines=${*:-dask snakemake slurm jobqueue}
grid=$here/grid.toml
shards=4

say() { printf '%s\n' "$*" >&2; }
# Runs a command while this machine is a cluster of one node; 1 if it cannot be one.
on_slurm() {
    local program node
    for program in sbatch slurmctld slurmd munged; do
        if ! command -v "$program" >/dev/null || [ "$(id -u)" -ne 0 ]; then
            say "$engine: skipped, it needs root and Debian's slurm-wlm"
            return 1
        fi
    done
    node=$(mktemp -d)
    "$here/slurm_one_node.sh" "$node" "$@" || { say "$engine: failed"; tail -n 20 "$node"/*.log >&2; exit 1; }
    rm -rf "$node"
}

[ -x "$root/target/debug/segstream" ] || (cd "$root" && cargo build -p segstream-cli)
PATH=$root/target/debug:$work/venv/bin:$PATH
[ -d "$work/venv" ] || python3 -m venv "$work/venv"
rm -rf "$work/out" && mkdir -p "$work/out"

segstream sim sweep "$grid" --out "$work/out/one"
wanted=$(sha256sum < "$work/out/one/results.csv")
declare -A found
for engine in $engines; do
    out=$work/out/$engine
    mkdir -p "$out"
    case $engine in
        dask)
            pip install --quiet distributed
            python "$here/dask_shards.py" "$grid" "$out" $shards
            ;;
        snakemake)
            pip install --quiet snakemake
            (cd "$work" && snakemake --quiet all --snakefile "$here/Snakefile" --cores 2 --config grid="$grid" out="$out" shards=$shards)
            ;;
        slurm)
            on_slurm sbatch --wait --array=1-$shards "$here/slurm_shards.sh" "$grid" "$out" || continue
            segstream sim merge "$grid" --out "$out"
            ;;
        jobqueue)
            pip install --quiet distributed dask-jobqueue
            # Workers log where they were asked for.
            on_slurm env -C "$out" python "$here/dask_shards.py" "$grid" "$out" $shards slurm || continue
            ;;
        *)
            say "there is no engine $engine; give dask, snakemake, slurm or jobqueue"
            exit 2
            ;;
    esac
    found[$engine]=$(sha256sum < "$out/results.csv")
done

say "one process  ${wanted%% *}"
failed=0
for engine in "${!found[@]}"; do
    [ "${found[$engine]}" = "$wanted" ] && verdict=same || { verdict=OTHER; failed=1; }
    say "$(printf '%-12s' "$engine") ${found[$engine]%% *}  $verdict"
done
exit $failed
