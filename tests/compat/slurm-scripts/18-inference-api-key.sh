#!/bin/bash
#SBATCH --export=ALL,MODEL=mixtral,HF_HOME=/data/hf
#SBATCH --gres=gpu:1
#SBATCH --comment="nightly evaluation"

echo "$MODEL $HF_HOME"
python serve.py --model "$MODEL"
