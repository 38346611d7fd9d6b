module ppc

go 1.26.0

require (
	github.com/alecthomas/kong v1.17.0
	github.com/alecthomas/participle/v2 v2.1.4
	github.com/google/go-cmp v0.7.0
	github.com/rogpeppe/go-internal v1.16.0
	golang.org/x/tools v0.52.0
)

require golang.org/x/sys v0.50.0

require github.com/ebitengine/purego v0.11.3

require gopkg.in/yaml.v3 v3.0.1

require gonum.org/v1/gonum v0.17.0
