// Package propagate gives every value a sharding: in auto mode by spreading the
// stated ones along the factor rules of ops, as Shardy does; in explicit mode in
// one walk forward in which nothing is chosen.
package propagate
