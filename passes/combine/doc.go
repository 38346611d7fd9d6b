// Package combine makes one collective of several alike, and one of those whose
// results are added up.
package combine
