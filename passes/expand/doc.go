// Package expand leaves pure StableHLO with Shardy shardings: pp ops become
// loops, functions of chlo the ops that they are made of, calls and composites
// the bodies of what they call.
package expand
