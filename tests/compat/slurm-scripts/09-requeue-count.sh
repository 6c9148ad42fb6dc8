#!/bin/bash
#SBATCH --requeue
#SBATCH --output=requeue-%j.out

if [ "${SLURM_RESTART_COUNT:-0}" -gt 0 ]; then
    echo "restart number $SLURM_RESTART_COUNT"
    exit 0
fi
echo "first run"
scontrol requeue "$SLURM_JOB_ID"
sleep 60
