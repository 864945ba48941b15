#!/bin/sh
# sbatch --array=1-4 slurm_shards.sh GRID OUT, then: sbatch --dependency=afterok:JOB --wrap "segstream sim merge GRID --out OUT"
#SBATCH --ntasks=1 --cpus-per-task=1 --output=/dev/null
exec segstream sim sweep "$1" --shard "$SLURM_ARRAY_TASK_ID/$SLURM_ARRAY_TASK_COUNT" --threads 1 --out "$2"
