// Package expand lowers a module to pure StableHLO with Shardy shardings: pp ops
// become loops, chlo ops their decompositions into StableHLO, calls and composites
// the bodies of their callees.
package expand
