"""Job scripts for sites where no daemon may run: an array whose tasks each do a part of the study."""

import re
import shlex
import shutil
from pathlib import Path

MOST_TASKS = 100


def slurm_script(study: Path, folder: Path, name: str, points: int, tasks: int | None = None) -> str:
    """The script of a Slurm job array whose `tasks` write a file each; the next plain run merges them."""
    number = min(points, tasks or MOST_TASKS)
    job = re.sub(r"[^A-Za-z0-9_.-]+", "-", name).strip("-") or "study"
    program = shlex.quote(shutil.which("designer") or "designer")
    command = f"{program} study {shlex.quote(str(study.resolve()))} -o {shlex.quote(str(folder.resolve()))}"
    return f"""#!/bin/sh
#SBATCH --job-name={job}
#SBATCH --array=1-{number}
#SBATCH --ntasks=1
#SBATCH --cpus-per-task=1
#SBATCH --mem=4G
#SBATCH --requeue
# {points:,} points in {number} tasks. A task that is run again goes on where it ended. When all are through, this
# merges their results, designs what is missing, and writes the tables:
#   {command}
exec {command} --executor serial --part "$SLURM_ARRAY_TASK_ID/{number}"
"""
