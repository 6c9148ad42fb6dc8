#!/bin/bash -e
#SBATCH --job-name=fails
#SBATCH --output=fails-%j.out
echo before
grep -q no-such-line params.txt
echo after
