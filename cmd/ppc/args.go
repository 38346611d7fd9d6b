package main

import (
	"slices"
	"strings"

	"github.com/alecthomas/kong"
)

// gathered is args with the arguments of the command before its flags, in the order that either have: kong
// takes an argument that follows flags for one too many. Where a flag is not known args stay as they
// are, for kong to say so, and so does what follows --.
func gathered(root *kong.Node, args []string) []string {
	node, flags := root, slices.Clone(root.Flags)
	var words, options []string
	for i := 0; i < len(args); i++ {
		arg := args[i]
		switch {
		case arg == "--":
			return slices.Concat(words, options, args[i:])
		case len(arg) > 1 && arg[0] == '-':
			n := flagLength(flags, args[i:])
			if n == 0 {
				return args
			}
			options = append(options, args[i:i+n]...)
			i += n - 1
		default:
			words = append(words, arg)
			if k := slices.IndexFunc(node.Children, func(c *kong.Node) bool { return c.Name == arg }); k >= 0 {
				node = node.Children[k]
				flags = append(flags, node.Flags...)
			}
		}
	}
	return append(words, options...)
}

// flagLength is how many of args the flag takes that is the first of them, its value included; 0 where it
// is none of flags.
func flagLength(flags []*kong.Flag, args []string) int {
	name, _, valued := strings.Cut(strings.TrimLeft(args[0], "-"), "=")
	for _, f := range flags {
		long := strings.HasPrefix(args[0], "--") && (f.Name == name || f.Tag.Negatable != "" && name == "no-"+f.Name)
		short := args[0][1] != '-' && f.Short != 0 && strings.HasPrefix(name, string(f.Short))
		switch {
		case !long && !short:
		case valued || f.IsBool() || f.IsCounter() || short && len(name) > len(string(f.Short)):
			return 1
		default:
			return min(2, len(args))
		}
	}
	return 0
}
