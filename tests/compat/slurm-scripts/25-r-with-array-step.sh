#!/bin/bash
#SBATCH --array=10-30:10
#SBATCH --job-name=bootstrap
Rscript bootstrap.R --replicate "$SLURM_ARRAY_TASK_ID" --last "$SLURM_ARRAY_TASK_MAX" --step "$SLURM_ARRAY_TASK_STEP"
