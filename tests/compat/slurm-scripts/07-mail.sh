#!/bin/bash
#SBATCH --job-name=notify
#SBATCH --mail-type=BEGIN,END,FAIL
#SBATCH --mail-user=someone@example.org
#SBATCH --time=00:05:00
#SBATCH --qos=normal
hostname
