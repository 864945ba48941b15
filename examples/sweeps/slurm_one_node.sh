#!/usr/bin/env bash
# Starts Slurm on this machine, as its only node, for the time of one command, and stops it. Needs root and Debian's slurm-wlm.
#
#   slurm_one_node.sh FOLDER COMMAND...
set -euo pipefail
folder=$(realpath "$1")
shift
install -d -o munge -g munge "$folder/munge"
install -d "$folder/state" "$folder/spool"
dd if=/dev/urandom of="$folder/munge/key" bs=1024 count=1 status=none
chown munge "$folder/munge/key" && chmod 400 "$folder/munge/key"
chmod 755 "$folder" "$folder/munge"
host=$(hostname -s)
cat > "$folder/slurm.conf" <<END
ClusterName=one
SlurmctldHost=$host
SlurmUser=root
SlurmctldPort=26817
SlurmdPort=26818
AuthType=auth/munge
AuthInfo=socket=$folder/munge/socket
StateSaveLocation=$folder/state
SlurmdSpoolDir=$folder/spool
SlurmctldPidFile=$folder/slurmctld.pid
SlurmdPidFile=$folder/slurmd.pid
SlurmctldLogFile=$folder/slurmctld.log
SlurmdLogFile=$folder/slurmd.log
ProctrackType=proctrack/pgid
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
ReturnToService=2
NodeName=$host CPUs=$(nproc) RealMemory=$(awk '/^MemTotal/ { print int($2 / 1024 * 0.9) }' /proc/meminfo) State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
END
export SLURM_CONF=$folder/slurm.conf
stop() {
    local program pid
    for program in slurmd slurmctld munge/munged; do
        [ -s "$folder/$program.pid" ] || continue
        pid=$(cat "$folder/$program.pid")
        kill "$pid" 2>/dev/null || continue
        # They write their state before they end.
        for _ in $(seq 100); do
            kill -0 "$pid" 2>/dev/null || break
            sleep 0.1
        done
    done
}
trap stop EXIT
setpriv --reuid=munge --regid=munge --clear-groups munged --key-file="$folder/munge/key" --socket="$folder/munge/socket" \
    --pid-file="$folder/munge/munged.pid" --log-file="$folder/munge/munged.log" --seed-file="$folder/munge/seed" --force
slurmctld -f "$SLURM_CONF"
slurmd -f "$SLURM_CONF" -N "$host"
for _ in $(seq 60); do
    sinfo -h -o %t 2>/dev/null | grep -q idle && break
    sleep 1
done
"$@"
