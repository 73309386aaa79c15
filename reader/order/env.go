package order

import (
	"fmt"
	"strconv"
)

// launcher is a program that starts the processes of a training, and the
// variables by which it says which one this is.
type launcher struct {
	name   string
	rank   string
	worlds []string // the first that is set counts
	hint   string   // for when none is
}

// launchers, the innermost first: torchrun may run within any of the others,
// mpirun within SLURM.
//
// torchrun: https://pytorch.org/docs/stable/elastic/run.html, and the training
// operators of Kubeflow set the same. Open MPI: "Environment variables set for
// MPI applications" of its manual. SLURM: "Output environment variables" of
// srun(1); SLURM_NTASKS stands in salloc's shells too, SLURM_PROCID does not.
// Kubernetes sets JOB_COMPLETION_INDEX for the pods of an Indexed Job, and
// nothing that says how many there are: the others are for the author of the
// Job to set.
var launchers = []launcher{
	{name: "torchrun", rank: "RANK", worlds: []string{"WORLD_SIZE"}},
	{name: "Open MPI", rank: "OMPI_COMM_WORLD_RANK", worlds: []string{"OMPI_COMM_WORLD_SIZE"}},
	{name: "SLURM", rank: "SLURM_PROCID", worlds: []string{"SLURM_STEP_NUM_TASKS", "SLURM_NTASKS"}},
	{name: "Kubernetes", rank: "JOB_COMPLETION_INDEX", worlds: []string{"WORLD_SIZE", "JOB_COMPLETIONS", "JOB_PARALLELISM"},
		hint: ": Kubernetes tells a pod of an indexed job its number, but not how many there are"},
}

// Detect returns the rank and the world that the environment tells, and which
// launcher told: torchrun, Open MPI, SLURM or Kubernetes. Where none did they
// are 0 and 1, and from is "". Variables that are malformed, contradict each
// other or say only half are ErrUsage, naming them. getenv is os.Getenv.
func Detect(getenv func(string) string) (rank, world int, from string, err error) {
	for _, l := range launchers {
		if getenv(l.rank) == "" {
			continue
		}
		rank, world, err = l.read(getenv)
		return rank, world, l.name, err
	}
	for _, l := range launchers[:2] {
		if w := l.worlds[0]; getenv(w) != "" {
			return 0, 0, l.name, usage("%s is set to %q, but %s is not: set both, or give rank and world as options", w, getenv(w), l.rank)
		}
	}
	return 0, 1, "", nil
}

func (l launcher) read(getenv func(string) string) (rank, world int, err error) {
	if rank, err = number(getenv, l.rank, 0); err != nil {
		return 0, 0, err
	}
	for _, w := range l.worlds {
		if getenv(w) == "" {
			continue
		}
		if world, err = number(getenv, w, 1); err != nil {
			return 0, 0, err
		}
		if rank >= world {
			return 0, 0, usage("%s is %d, but %s is %d: ranks count from 0", l.rank, rank, w, world)
		}
		return rank, world, nil
	}
	names := l.worlds[0]
	for _, w := range l.worlds[1:] {
		names += " or " + w
	}
	return 0, 0, usage("%s is set to %d, but the world is not told%s: set %s, or give rank and world as options", l.rank, rank, l.hint, names)
}

func number(getenv func(string) string, name string, least int) (int, error) {
	n, err := strconv.Atoi(getenv(name))
	if err != nil || n < least {
		return 0, usage("%s is %s: it must be a whole number from %d on", name, fmt.Sprintf("%.40q", getenv(name)), least)
	}
	return n, nil
}
