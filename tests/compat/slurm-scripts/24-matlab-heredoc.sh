#!/bin/bash
#SBATCH --job-name=matlab
#SBATCH --time=20
#SBATCH --input=/dev/null

matlab -nodisplay <<'EOF'
disp(pi)
exit
EOF
