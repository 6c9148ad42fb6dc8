#!/bin/bash
#SBATCH --job-name=checkpoint
#SBATCH --time=0:10:00
#SBATCH --signal=B:USR1@60
#SBATCH --requeue
#SBATCH --open-mode=append
#SBATCH --gres=gpu:1

# Sent a minute before the limit: save, and go to the end of the queue.
save_and_requeue()
{
    echo "caught USR1 at $(date)"
    kill -TERM "$PID"
    wait "$PID"
    scontrol requeue "$SLURM_JOB_ID"
}
trap save_and_requeue USR1

python train.py --resume latest &
PID=$!
wait $PID
