#!/usr/bin/env bash
#SBATCH --job-name=container
#SBATCH --gpus-per-node=1
#SBATCH --time=30
#SBATCH --mem-per-cpu=200M

IMAGE=$HOME/images/pytorch_24.01.sif
apptainer exec --nv --bind "$PWD:/data" "$IMAGE" python /data/evaluate.py
