package driver

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"ppc/driver/binding"
	"ppc/internal/atomicfile"
	"ppc/ir"
	"ppc/ir/lang"
	"ppc/lower"
)

//go:embed job/run.py
var jobScript []byte

// LaunchOptions says what job is written.
type LaunchOptions struct {
	Dir   string // for the files
	Seed  *uint64
	Steps *int // of training; nil for the program's own
}

// A job is what run.py reads of a program, as job.json.
type job struct {
	Name    string     `json:"name"`
	Devices int        `json:"devices"`
	Mesh    [][2]any   `json:"mesh"` // axes and sizes, major first
	Seed    uint64     `json:"seed"`
	Steps   int        `json:"steps"`
	Params  []*jobPort `json:"params"`
	Results []*jobPort `json:"results"`
}

// A jobPort is a parameter or a result.
type jobPort struct {
	Name    string     `json:"name"`
	Kind    string     `json:"kind"`
	Shape   []int      `json:"shape"` // of the global value
	DType   string     `json:"dtype"`
	Spec    [][]string `json:"spec"`    // the mesh axes that each dimension is sharded along
	Init    string     `json:"init"`    // initialiser, or ""
	File    string     `json:"file"`    // of the first value, or ""
	First   int        `json:"first"`   // the place of its first element in the value that has the name
	Max     int        `json:"max"`     // of integers that are made up; 0 where the program does not say
	Batches int        `json:"batches"` // that an input has on a leading axis
	Alias   int        `json:"alias"`   // of a result: the parameter that it is in the next step, or -1
}

// numpyTypes are the names that JAX has for element types.
var numpyTypes = map[ir.DType]string{
	ir.I1: "bool", ir.I8: "int8", ir.I16: "int16", ir.I32: "int32", ir.I64: "int64", ir.UI8: "uint8", ir.UI16: "uint16", ir.UI32: "uint32", ir.UI64: "uint64",
	ir.F16: "float16", ir.BF16: "bfloat16", ir.F32: "float32", ir.F64: "float64", ir.C64: "complex64", ir.C128: "complex128",
}

// Launch writes a job that a cluster with JAX runs: the program for all devices with
// its shardings, what its parameters and results are, and a script.
func Launch(ctx context.Context, src *Source, opts LaunchOptions) error {
	read := lang.Options{Train: opts.Steps == nil || *opts.Steps > 0}
	if opts.Steps != nil {
		read.Steps = *opts.Steps
	}
	p, err := src.load(ctx, read)
	if err != nil {
		return err
	}
	p.sayWarnings()
	if err := p.compile(ctx, "propagate", ""); err != nil {
		return err
	}
	text, err := lower.StableHLO(p.m)
	if err != nil {
		return err
	}
	j, err := newJob(p, opts)
	if err != nil {
		return err
	}
	data, err := json.MarshalIndent(j, "", " ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(opts.Dir, 0o755); err != nil {
		return fileError(err)
	}
	for _, f := range append(jobTemplates(j), jobFile{"program.mlir", []byte(text)}, jobFile{"job.json", append(data, '\n')}, jobFile{"run.py", jobScript}) {
		path := filepath.Join(opts.Dir, f.name)
		if err := atomicfile.WriteBytes(ctx, path, f.text); err != nil {
			return writeError(path, err)
		}
	}
	return nil
}

type jobFile struct {
	name string
	text []byte
}

func newJob(p *program, opts LaunchOptions) (*job, error) {
	j := &job{Name: p.m.Name, Devices: max(binding.NumDevices(p.m), 1), Seed: p.seed, Steps: 1, Mesh: [][2]any{}}
	if opts.Seed != nil {
		j.Seed = *opts.Seed
	}
	if t := p.training; t != nil {
		j.Steps = t.Steps
	}
	if len(p.m.Meshes) > 0 {
		for _, a := range p.m.Meshes[0].Axes {
			j.Mesh = append(j.Mesh, [2]any{a.Name, a.Size})
		}
	}
	f := p.m.Main()
	params, results := binding.Ports(p.m, p.named)
	var err error
	for i, port := range params {
		q, e := newJobPort(port, f.Params()[i].Sharding)
		if e != nil && err == nil {
			err = e
		}
		j.Params = append(j.Params, q)
	}
	for i, port := range results {
		q, e := newJobPort(port, f.Results[i].Sharding)
		if e != nil && err == nil {
			err = e
		}
		j.Results = append(j.Results, q)
	}
	return j, err
}

func newJobPort(p *binding.Port, s *ir.Sharding) (*jobPort, error) {
	q := &jobPort{Name: p.Name, Kind: p.Kind, Shape: p.Global.Shape, DType: numpyTypes[p.Global.Elem], Init: p.Init, Max: p.Max, Batches: p.Batches, Alias: p.Alias, Spec: [][]string{}}
	if q.Shape == nil {
		q.Shape = []int{}
	}
	if q.DType == "" {
		return q, fmt.Errorf("%s: elements of type %s have no name in JAX", p.Name, p.Global.Elem)
	}
	if p.Rows != nil {
		q.First = p.Rows[0] * (p.InFile.NumElements() / p.InFile.Shape[0])
	}
	for d := range q.Shape {
		axes := []string{}
		for _, r := range s.Axes(d) {
			if r.Size != 0 {
				return q, fmt.Errorf("%s: dimension %d is sharded along %s, a part of an axis, which JAX has no name for: give the mesh an axis for it", p.Name, d, r)
			}
			axes = append(axes, r.Name)
		}
		q.Spec = append(q.Spec, axes)
	}
	return q, nil
}

// jobTemplates are scripts that start run.py on a cluster, to be adapted.
func jobTemplates(j *job) []jobFile {
	name := strings.ToLower(strings.ReplaceAll(j.Name, "_", "-"))
	return []jobFile{
		{"slurm.sh", []byte(fmt.Sprintf(slurmTemplate, name))},
		{"gke.yaml", []byte(fmt.Sprintf(gkeTemplate, name))},
		{"ssh.sh", []byte(sshTemplate)},
	}
}

const slurmTemplate = `#!/bin/sh
#SBATCH --job-name=%s
#SBATCH --nodes=1
#SBATCH --ntasks-per-node=1
#SBATCH --signal=TERM@120
# sbatch --nodes=N slurm.sh: one process per node, with all of its devices.
exec srun python3 "$(dirname "$0")/run.py" --checkpoints "${CHECKPOINTS:-checkpoints}" --every "${EVERY:-100}" "$@"
`

const gkeTemplate = `# kubectl apply -f gke.yaml: one pod per host; image has jax, and the job at /job.
apiVersion: jobset.x-k8s.io/v1alpha2
kind: JobSet
metadata:
  name: %s
spec:
  replicatedJobs:
  - name: worker
    template:
      spec:
        parallelism: 1   # hosts
        completions: 1
        backoffLimit: 0
        template:
          spec:
            restartPolicy: Never
            terminationGracePeriodSeconds: 120
            containers:
            - name: jax
              image: IMAGE
              command: ["python3", "/job/run.py", "--checkpoints", "/checkpoints", "--every", "100"]
`

const sshTemplate = `#!/bin/sh
# ssh.sh HOST...: one process per host; the job is at the same place on all of them.
job=$(cd "$(dirname "$0")" && pwd)
first=$1 n=$# i=0
for host in "$@"; do
  ssh "$host" python3 "$job/run.py" --coordinator "$first:12355" --processes "$n" --process "$i" &
  i=$((i + 1))
done
wait
`
