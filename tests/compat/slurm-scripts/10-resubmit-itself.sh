#!/bin/bash
#SBATCH --job-name=chain
#SBATCH --output=chain-%j.out
#SBATCH --time=5

N=${1:-1}
echo "link $N"
if [ "$N" -lt 3 ]; then
    sbatch --dependency=afterany:$SLURM_JOB_ID chain.sh $((N + 1))
fi
