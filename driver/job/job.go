// Package job writes jobs that processes of JAX run, and runs them on this machine.
//
// A job is a folder: the program for all devices, what its parameters and results
// are, one script on JAX and numpy, and ways to start that on a cluster. [Job.Write]
// makes the folder; [Start] starts the script in several processes here.
package job

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"ppc/internal/atomicfile"
	"ppc/ir"
)

//go:embed run.py
var script []byte

// A Job is what run.py reads of a program, as job.json.
type Job struct {
	Name    string   `json:"name"`
	Devices int      `json:"devices"`
	Mesh    [][2]any `json:"mesh"`  // axes and sizes, major first
	Order   []int    `json:"order"` // the devices at the places of the mesh; null where they count on
	Seed    uint64   `json:"seed"`
	First   int      `json:"first"` // steps that were done before
	Steps   int      `json:"steps"`
	Data    string   `json:"data"` // the file that the program is trained on, or ""
	Params  []*Port  `json:"params"`
	Results []*Port  `json:"results"`

	Hosts int `json:"-"` // that the templates ask for
}

// A Port is a parameter or a result.
type Port struct {
	Name    string     `json:"name"`
	Kind    string     `json:"kind"`
	Shape   []int      `json:"shape"` // of the global value
	DType   string     `json:"dtype"`
	Spec    [][]string `json:"spec"`    // the mesh axes that each dimension is sharded along
	Init    string     `json:"init"`    // initialiser, or ""
	File    string     `json:"file"`    // the elements of its first value, in the folder of the job, or ""
	First   int        `json:"first"`   // the place of its first element in the value that has the name
	Held    int        `json:"held"`    // of how many elements that has values; the others are zero
	Max     int        `json:"max"`     // of integers that are made up; 0 where the program does not say
	Batches int        `json:"batches"` // that an input has on a leading axis
	Alias   int        `json:"alias"`   // of a result: the parameter that it is in the next step, or -1
}

// numpyTypes are the names that JAX has for element types.
var numpyTypes = map[ir.DType]string{
	ir.I1: "bool", ir.I8: "int8", ir.I16: "int16", ir.I32: "int32", ir.I64: "int64", ir.UI8: "uint8", ir.UI16: "uint16", ir.UI32: "uint32", ir.UI64: "uint64",
	ir.F16: "float16", ir.BF16: "bfloat16", ir.F32: "float32", ir.F64: "float64", ir.C64: "complex64", ir.C128: "complex128",
}

// Describe sets what is known from the type and the sharding of the value. JAX wants
// what arrays are sharded along to divide their dimensions: a dimension that does
// not divide is replicated.
func (p *Port) Describe(t *ir.Type, s *ir.Sharding, mesh *ir.Mesh) error {
	p.Shape, p.DType, p.Spec = append([]int{}, t.Shape...), numpyTypes[t.Elem], [][]string{}
	if p.DType == "" {
		return fmt.Errorf("%s: elements of type %s have no name in JAX", p.Name, t.Elem)
	}
	for d, n := range p.Shape {
		axes := []string{}
		for _, r := range s.Axes(d) {
			if r.Size != 0 {
				return fmt.Errorf("%s: dimension %d is sharded along %s, a part of an axis, which JAX has no name for: give the mesh an axis for it", p.Name, d, r)
			}
			axes = append(axes, r.Name)
		}
		if len(axes) > 0 && n%mesh.RefsSize(s.Axes(d)) != 0 {
			axes = []string{}
		}
		p.Spec = append(p.Spec, axes)
	}
	return nil
}

// Write writes the job with the text of its program to a folder.
func (j *Job) Write(ctx context.Context, dir, program string) error {
	data, err := json.MarshalIndent(j, "", " ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for _, f := range append(j.templates(), file{"program.mlir", []byte(program)}, file{"job.json", append(data, '\n')}, file{"run.py", script}) {
		path := filepath.Join(dir, f.name)
		if err := atomicfile.WriteBytes(ctx, path, f.text); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
	}
	return nil
}

type file struct {
	name string
	text []byte
}

// templates are scripts that start run.py on a cluster, to be adapted.
func (j *Job) templates() []file {
	hosts := max(j.Hosts, 1)
	name := strings.ToLower(strings.ReplaceAll(j.Name, "_", "-"))
	return []file{
		{"slurm.sh", []byte(fmt.Sprintf(slurmTemplate, name, hosts, j.Devices/hosts))},
		{"gke.yaml", []byte(fmt.Sprintf(gkeTemplate, name, hosts, hosts))},
		{"ssh.sh", []byte(sshTemplate)},
	}
}

const slurmTemplate = `#!/bin/sh
#SBATCH --job-name=%s
#SBATCH --nodes=%d
#SBATCH --ntasks-per-node=1
#SBATCH --signal=TERM@120
# sbatch slurm.sh [FLAGS of run.py]: one process per node, with %d devices.
cd "${SLURM_SUBMIT_DIR:-.}" && exec srun python3 "${JOB:-job}/run.py" --checkpoints "${CHECKPOINTS:-checkpoints}" --every "${EVERY:-100}" "$@"
`

const gkeTemplate = `# kubectl apply -f gke.yaml: one pod per host; IMAGE has jax, numpy and orbax-checkpoint, and the job at /job.
apiVersion: jobset.x-k8s.io/v1alpha2
kind: JobSet
metadata:
  name: %s
spec:
  replicatedJobs:
  - name: worker
    template:
      spec:
        parallelism: %d
        completions: %d
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
