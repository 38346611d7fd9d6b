package facts

// A Schedule is what each stage of a pipeline works on in each iteration: S
// stages, M microbatches, R repeats, L layers per stage and repeat, and D
// iterations from the computation of a stage to that of the next.
type Schedule struct{ S, M, R, L, D int }

// Round is N, the iterations from one repeat of a stage to its next: a
// microbatch for each, and at least the D*S iterations that a microbatch takes
// from stage 0 through all stages and back to it. Where there are fewer
// microbatches than that, the rest of every repeat but the last is bubble.
func (s Schedule) Round() int {
	if s.R == 1 {
		return s.M
	}
	return max(s.M, s.D*s.S)
}

// Before is the iterations until microbatch 0 leaves the last stage of the last
// repeat.
func (s Schedule) Before() int { return s.Round()*(s.R-1) + s.D*(s.S-1) }

// Iterations is the trip count T; the last D*(S-1) are the drain.
func (s Schedule) Iterations() int { return s.Before() + s.M }

// Held is m, the microbatches in each stage's slice of the input and output
// buffer. Where M is no multiple of S, the buffer has S*m - M more than the
// batch has.
func (s Schedule) Held() int { return (s.M + s.S - 1) / s.S }

// Storage reports whether microbatches are stored between repeats: there are more
// of them than the pipeline holds.
func (s Schedule) Storage() bool { return s.R > 1 && s.M > s.S*s.D }

// At is what stage s works on in iteration t: a microbatch in a repeat, or
// nothing, where the iteration is a bubble of the stage.
func (s Schedule) At(stage, t int) (microbatch, repeat int, work bool) {
	p := t - s.D*stage
	if p < 0 {
		return 0, 0, false
	}
	microbatch, repeat = p%s.Round(), p/s.Round()
	return microbatch, repeat, microbatch < s.M && repeat < s.R
}
