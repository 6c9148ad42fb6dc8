#!/bin/bash
#SBATCH --export=NONE
#SBATCH --output=clean-%j.out
echo "HOME=$HOME secret=${SECRET-unset}"
