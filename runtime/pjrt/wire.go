package pjrt

import (
	"time"

	"ppc/ir"
)

// The two processes of a worker exchange one request and one reply at a time, in
// gob.

// A request is what the parent asks; the fields that are set say what.
type request struct {
	Open    *openRequest
	Compile *compileRequest
	Run     *runRequest
	Fetch   *fetchRequest
}

type openRequest struct {
	Path     string
	Options  Options
	Topology string // compile ahead of time for it; "" for devices that are here
}

type compileRequest struct {
	Text    string
	Devices int
	Options CompileOptions
	Results []array // without data
	Save    bool    // reply with the compiled program
}

// runRequest is arguments by number: n >= 0 is Arrays[n], n < 0 the result -1-n of
// the run before, counted over devices.
type runRequest struct {
	Arrays []array
	Args   [][]int
	Keep   []bool // results of each device that stay there
}

// fetchRequest asks for those results of the last run that stayed on their devices.
type fetchRequest struct{ Keep []bool }

// A reply answers a request. Failed says what the plugin said was wrong.
type reply struct {
	Failed *Error
	Other  string // an error that is not the plugin's

	Info    Info
	Stats   *Stats
	Saved   []byte
	HLO     []byte
	Results [][]array
	CPU     time.Duration // of all cores
}

// An array is a literal without what gob cannot have.
type array struct {
	Elem  ir.DType
	Shape []int
	Data  []byte
}

func arrayOf(l *ir.Literal) array { return array{l.Type.Elem, l.Type.Shape, l.Data} }

func typeOf(t *ir.Type) array { return array{Elem: t.Elem, Shape: t.Shape} }

func (a array) typ() *ir.Type { return ir.Tensor(a.Elem, a.Shape...) }

func (a array) literal() *ir.Literal { return &ir.Literal{Type: a.typ(), Data: a.Data} }

// Info is what a plugin says of itself.
type Info struct {
	Path         string
	Major, Minor int    // of the interface
	Platform     string // cpu, cuda, tpu
	Version      string
	Kind         string // the vendor's name of the devices
	Devices      int
}
