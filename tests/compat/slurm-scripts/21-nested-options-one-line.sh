#!/bin/sh
#SBATCH -J short -t 5 -c 1 --mem 100M -o short-%j.out
##SBATCH --nodelist=node17
# SBATCH --reservation=old
echo "$SLURM_JOB_NAME"

#SBATCH --nodes=4
