#!/usr/bin/env python3
#SBATCH --job-name=python
#SBATCH --output=python-%j.out
#SBATCH --cpus-per-task=2
import os

print("python on", os.environ["SLURM_CPUS_PER_TASK"], "cores of job", os.environ["SLURM_JOB_ID"])
