package maxtext_test

import (
	"fmt"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"ppc/import/maxtext"
	"ppc/internal/golden"
)

// files is a ReadFile of files in memory.
func files(m map[string]string) func(string) ([]byte, error) {
	return func(name string) ([]byte, error) {
		if text, ok := m[name]; ok {
			return []byte(text), nil
		}
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
}

// small is a base whose sizes are small.
const small = `base_emb_dim: 64
base_num_query_heads: 4
base_num_kv_heads: 2
head_dim: 16
base_mlp_dim: 128
base_num_decoder_layers: 8
vocab_size: 256
max_target_length: 32
per_device_batch_size: 2
steps: 10
`

// from imports in.yml with the words of a golden's stage line: key=value,
// devices=N and huggingface.
func from(src string, args []string) (*maxtext.Result, error) {
	opts := maxtext.Options{Files: []string{"in.yml"}, Devices: 8, ReadFile: files(map[string]string{"in.yml": src, "small.yml": small})}
	for _, a := range args {
		if n, ok := strings.CutPrefix(a, "devices="); ok {
			opts.Devices, _ = strconv.Atoi(n)
		} else if a == "huggingface" {
			opts.HuggingFace = true
		} else {
			opts.Set = append(opts.Set, a)
		}
	}
	return maxtext.Import(opts)
}

func imported(t *testing.T, src string, args []string) *maxtext.Result {
	t.Helper()
	r, err := from(src, args)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestGolden(t *testing.T) {
	golden.Run(t, "../../testdata/golden/maxtext", map[string]golden.Stage{
		"program": func(t *testing.T, src string, args []string) string { return string(imported(t, src, args).Text) },
		"layout": func(t *testing.T, src string, args []string) string { // from the mesh on
			text := string(imported(t, src, args).Text)
			return text[max(0, strings.Index(text, "mesh {")):]
		},
		"errors": func(t *testing.T, src string, args []string) string {
			_, err := from(src, args)
			if err == nil {
				t.Fatal("no error")
			}
			return err.Error() + "\n"
		},
		"warnings": func(t *testing.T, src string, args []string) string {
			return imported(t, src, args).Warnings.Error() + "\n"
		},
		"answers": func(t *testing.T, src string, args []string) string {
			var b strings.Builder
			for _, a := range imported(t, src, args).Answers {
				fmt.Fprintf(&b, "%s=%s: %s: %s\n", a.Name, a.Value, a.Answer, a.Says)
			}
			return b.String()
		},
	})
}

// Every key has one row, which says what becomes of it, and a default of its kind.
func TestKeys(t *testing.T) {
	seen := make(map[string]bool)
	for _, k := range maxtext.Keys() {
		if seen[k.Name] {
			t.Errorf("%s has two rows", k.Name)
		}
		seen[k.Name] = true
		if !slices.Contains([]maxtext.Answer{maxtext.Mapped, maxtext.Unused, maxtext.Refused}, k.Answer) || k.Says == "" {
			t.Errorf("%s: %q: %q", k.Name, k.Answer, k.Says)
		}
		if _, ok := map[string]bool{"bool": true, "whole": true, "number": true, "text": true, "list": true, "map": true, "any": true}[k.Kind]; !ok {
			t.Errorf("%s: there is no kind %q", k.Name, k.Kind)
		}
	}
	if len(seen) < 800 {
		t.Errorf("%d keys", len(seen))
	}
}

// The defaults alone are a configuration, and so is every key at its default.
func TestDefaults(t *testing.T) {
	var set []string
	for _, k := range maxtext.Keys() {
		if k.Name != "base_config" && k.Kind == "bool" && k.Default != nil {
			set = append(set, fmt.Sprintf("%s=%v", k.Name, k.Default))
		}
	}
	one, err := maxtext.Import(maxtext.Options{Devices: 8})
	if err != nil {
		t.Fatal(err)
	}
	all, err := maxtext.Import(maxtext.Options{Devices: 8, Set: set})
	if err != nil {
		t.Fatal(err)
	}
	body := func(r *maxtext.Result) string {
		return regexp.MustCompile(`(?m)^//.*\n`).ReplaceAllString(string(r.Text), "")
	}
	if body(one) != body(all) {
		t.Errorf("defaults that are given change the program:\n%s", all.Text)
	}
}

// base_config names a file beside its own, or one by its full path.
func TestBaseConfig(t *testing.T) {
	dir, err := filepath.Abs(string(filepath.Separator) + "configs")
	if err != nil {
		t.Fatal(err)
	}
	base := filepath.Join(dir, "base.yml")
	for _, named := range []string{"base.yml", base} {
		read := files(map[string]string{filepath.Join(dir, "in.yml"): "base_config: '" + named + "'\n", base: small})
		if _, err := maxtext.Import(maxtext.Options{Files: []string{filepath.Join(dir, "in.yml")}, Devices: 8, ReadFile: read}); err != nil {
			t.Errorf("base_config: %s: %v", named, err)
		}
	}
}

// What would be large or endless ends soon, with an error that says where.
func TestHostile(t *testing.T) {
	bomb := "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n"
	for i := 1; i < 10; i++ {
		bomb += fmt.Sprintf("a%d: &a%d [%s]\n", i, i, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*a%d, ", i-1), 10), ", "))
	}
	for _, c := range []struct{ what, text, want string }{
		{"aliases", bomb, `in.yml:\d+:\d+: aliases make more than 131072 values`},
		{"10 MB", "run_name: " + strings.Repeat("x", 10<<20), `in.yml: the file has 10485770 bytes, at most 262144 are read`},
		{"depth", "compress_ratios: " + strings.Repeat("[", 20000), `in.yml:1:1: this is not YAML: exceeded max depth`},
		{"depth of values", "compress_ratios: " + strings.Repeat("[", 100) + strings.Repeat("]", 100), `in.yml:1:\d+: values nest more than 16 deep`},
		{"an alias of itself", "compress_ratios: &a [*a]", `in.yml:1:1: this is not YAML: anchor 'a' value contains itself|values nest more than 16 deep`},
		{"bytes", "run_name: \x01", `in.yml:1:1: this is not YAML: control characters are not allowed`},
		{"a cycle", "base_config: in.yml", `base_config: the file starts from itself: in.yml -> in.yml`},
		{"a file that is not there", "base_config: other.yml", `other.yml: cannot be read: file does not exist`},
	} {
		began := time.Now()
		_, err := from(c.text, nil)
		if err == nil || !regexp.MustCompile(c.want).MatchString(err.Error()) {
			t.Errorf("%s: %.300v, want %s", c.what, err, c.want)
		}
		if took := time.Since(began); took > 2*time.Second {
			t.Errorf("%s: takes %v", c.what, took)
		}
	}
}
