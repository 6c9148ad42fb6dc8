#!/bin/bash
#SBATCH -n 2
#SBATCH -t 15
srun --mpi=pmi2 --cpu-bind=cores ./solver input.dat
