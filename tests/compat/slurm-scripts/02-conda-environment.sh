#!/bin/bash -l
#SBATCH -J finetune
#SBATCH -o finetune.%j.log
#SBATCH -p a100
#SBATCH -G 1
#SBATCH -c 2
#SBATCH -t 1-00:00:00

source ~/miniconda3/etc/profile.d/conda.sh
conda activate torch

python -u finetune.py --model llama --data /scratch/$USER/data
