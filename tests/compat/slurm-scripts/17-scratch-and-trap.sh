#!/bin/bash
#SBATCH --job-name=scratch
#SBATCH --gres=gpu:1
#SBATCH --chdir=.

SCRATCH=$(mktemp -d "${TMPDIR:-/tmp}/job-$SLURM_JOB_ID.XXXXXX")
cleanup() { rm -rf "$SCRATCH"; }
trap cleanup EXIT
cp params.txt "$SCRATCH"/
cd "$SCRATCH"
wc -l <params.txt >"$SLURM_SUBMIT_DIR/lines-$SLURM_JOB_ID"
