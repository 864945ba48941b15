"""GRID OUT SHARDS [slurm]: every shard is a task of Dask, on two workers here, or on two that dask_jobqueue asks Slurm for."""
import subprocess, sys, time

def shard(grid, out, part):
    subprocess.run(["segstream", "sim", "sweep", grid, "--shard", part, "--threads", "1", "--out", out], check=True)

def cluster(engine=()):
    # Why not at the start: how the program is used can then be read without Dask.
    import dask
    from dask.distributed import LocalCluster
    # Why: Dask looks at the Python stacks of its workers 100 times a second, and at its event loops 50 times. A worker that waits for a program
    # shows nothing there, and the two took half of the 8 % of two processors that Dask needs.
    dask.config.set({"distributed.worker.profile.enabled": False, "distributed.admin.tick.interval": "500 ms"})
    if "slurm" not in engine:
        return LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None)
    from dask_jobqueue import SLURMCluster
    workers = SLURMCluster(cores=1, processes=1, memory="512MiB", walltime="01:00:00", scheduler_options={"dashboard_address": None})
    workers.scale(jobs=2)
    return workers

if __name__ == "__main__":
    if len(sys.argv) < 4:
        sys.exit(f"usage: dask_shards.py {__doc__}")
    from dask.distributed import Client
    grid, out, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
    with cluster(sys.argv[4:]) as workers, Client(workers) as client:
        client.wait_for_workers(1)
        began = time.monotonic()
        client.gather([client.submit(shard, grid, out, f"{index}/{count}", pure=False) for index in range(1, count + 1)])
        print(f"{count} shards took {time.monotonic() - began:.2f} s", file=sys.stderr)
    subprocess.run(["segstream", "sim", "merge", grid, "--out", out], check=True)
