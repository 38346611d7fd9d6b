// Package propagate gives every value a sharding: in auto mode by propagating the
// stated ones along the factors of each op's sharding rule until a fixpoint, as
// Shardy does; in explicit mode in one walk forward, as JAX does under explicit
// sharding, in which an ambiguous op is an error.
package propagate
