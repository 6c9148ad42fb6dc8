#!/bin/bash
#SBATCH --job-name=jupyter
#SBATCH --gres=gpu:1
#SBATCH --time=08:00:00
#SBATCH --output=jupyter-%J.log

PORT=$((8000 + SLURM_JOB_ID % 1000))
cat <<MESSAGE
ssh -N -L ${PORT}:$(hostname):${PORT} ${USER}@login
MESSAGE
jupyter lab --no-browser --port=$PORT --ip=0.0.0.0
