#!/bin/bash
#SBATCH --job-name=shares
#SBATCH --time=30
#BERTH --vram 6G
# Under Slurm the line of Berth is a comment.
python infer.py
