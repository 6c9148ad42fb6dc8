#!/bin/bash
#SBATCH --begin=now
#SBATCH --nice=100
#SBATCH --time-min=5
#SBATCH --time=10
date
