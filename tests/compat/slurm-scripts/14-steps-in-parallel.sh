#!/bin/bash
#SBATCH --ntasks=2
#SBATCH --output=steps.out

srun --exact -n 1 -c 1 ./solver a.dat &
srun --exact -n 1 -c 1 ./solver b.dat &
wait
