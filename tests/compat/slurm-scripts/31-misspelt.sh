#!/bin/bash
#SBATCH --job-name=typo
#SBATCH --tme=10
#SBATCH --mem=4Q
python train.py
