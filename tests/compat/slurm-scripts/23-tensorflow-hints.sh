#!/bin/bash
#SBATCH --job-name=tf
#SBATCH --constraint=simulated
#SBATCH --gres=gpu:1
#SBATCH --hint=nomultithread
#SBATCH --wckey=paper
#SBATCH --no-requeue
export TF_FORCE_GPU_ALLOW_GROWTH=true
python tf.py
