"""GRID OUT ROUNDS SHARDS: what two workers of Dask reach of two bare processes, for scaling.sh.

In each round one process runs the whole grid, then two at once run the whole grid each, then the workers share it. Why in turn: other work on the
machine then meets all of them. Dask runs only in its own part of a round. Medians, and the least to the most of the rounds.
"""
import statistics, subprocess, sys, time
from dask_shards import cluster

def sweep(grid, out, *flags):
    command = ["segstream", "sim", "sweep", grid, "--threads", "1", "--out", out, *flags]
    return subprocess.Popen(command, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)

def ended(*processes):
    assert all(process.wait() == 0 for process in processes), "a sweep has failed"

def shard(grid, out, part):
    began = time.monotonic()
    ended(sweep(grid, out, "--shard", part))
    return time.monotonic() - began

def timed(work):
    began = time.monotonic()
    result = work()
    return time.monotonic() - began, result

def results(out):
    with open(f"{out}/results.csv", "rb") as file:
        return file.read()

def told(values, digits=1):
    return f"{statistics.median(values):.{digits}f} ({min(values):.{digits}f} to {max(values):.{digits}f})"

def main(grid, out, rounds, shards):
    from dask.distributed import Client
    one, bare, shared, busy = [], [], [], []
    for number in range(rounds):
        place = f"{out}/{number}"
        parts = [f"{index}/{shards}" for index in range(1, shards + 1)]
        one.append(timed(lambda: ended(sweep(grid, f"{place}/one")))[0])
        bare.append(timed(lambda: ended(sweep(grid, f"{place}/first"), sweep(grid, f"{place}/second")))[0])
        with cluster() as workers, Client(workers) as client:
            client.wait_for_workers(2)
            work = lambda: client.gather([client.submit(shard, grid, f"{place}/dask", part, pure=False) for part in parts])
            took, each = timed(work)
        shared.append(took)
        busy.append(sum(each) / 2 / took)
        subprocess.run(["segstream", "sim", "merge", grid, "--out", f"{place}/dask"], check=True, capture_output=True)
        assert results(f"{place}/dask") == results(f"{place}/one"), "the results are not the same"
    print(f"one process {told(one)} s; two bare processes, each the whole: {told(bare)} s; two workers {told(shared)} s, {rounds} rounds")
    print(f"two workers are {told([a / b for a, b in zip(one, shared)], 2)} times one process,")
    print(f"and {told([a / 2 / b for a, b in zip(bare, shared)], 2)} of two bare processes; they had work for {told(busy, 3)} of the time")

if __name__ == "__main__":
    if len(sys.argv) < 5:
        sys.exit(f"usage: scaling.py {__doc__}")
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
