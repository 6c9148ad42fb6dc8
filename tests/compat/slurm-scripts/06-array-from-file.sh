#!/bin/bash
#SBATCH -a 1-3
#SBATCH -o sweep-%A-%a.log
#SBATCH --gres=gpu:1

# One line of params.txt for each task.
PARAMS=$(sed -n "${SLURM_ARRAY_TASK_ID}p" params.txt)
echo "running with: $PARAMS"
python sweep.py $PARAMS
