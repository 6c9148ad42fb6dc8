#!/bin/bash
#SBATCH --gres=gpu:1
#SBATCH --nodelist=gpu-node-07
#SBATCH --licenses=matlab:1
python train.py
