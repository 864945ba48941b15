"""GRID OUT SHARDS: every shard is a task of Dask. In place of LocalCluster, dask_jobqueue.SLURMCluster asks a cluster for workers."""
import subprocess, sys
from dask.distributed import Client, LocalCluster

def shard(grid, out, part):
    subprocess.run(["segstream", "sim", "sweep", grid, "--shard", part, "--threads", "1", "--out", out], check=True)

if __name__ == "__main__":
    grid, out, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster, Client(cluster) as client:
        client.gather([client.submit(shard, grid, out, f"{index}/{count}", pure=False) for index in range(1, count + 1)])
    subprocess.run(["segstream", "sim", "merge", grid, "--out", out], check=True)
