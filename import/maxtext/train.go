package maxtext

import (
	"fmt"
	"math"
	"strings"
)

// train is the train block.
func (p *plan) train() string {
	c := p.c
	var b strings.Builder
	set := func(key, value string) { fmt.Fprintf(&b, "  %s = %s\n", key, value) }
	steps := c.whole("steps")
	if steps == -1 {
		steps = c.whole("learning_rate_schedule_steps")
	}
	if steps < 0 {
		c.fail("steps", "", "%s: want a whole number from 0", c.is("steps"))
		steps = 1
	}
	set("optimizer", p.optimizer(p.rate(steps)))
	set("steps", fmt.Sprint(steps))
	if clip := c.number("gradient_clipping_threshold"); clip > 0 {
		set("clip_by_global_norm", fraction(clip))
	}
	if n := c.positive("gradient_accumulation_steps"); n > 1 {
		set("gradient_accumulation", fmt.Sprint(n))
	}
	switch t := c.typeOf("grad_dtype"); t {
	case "f32":
	case "bf16", "f64":
		set("dtype", t)
	default:
		c.fail("grad_dtype", "", "%s: gradients accumulate in float32, bfloat16 or float64", c.is("grad_dtype"))
	}
	if c.flag("shard_optimizer_over_data") {
		set("shard_optimizer_over_data", "true")
	}
	if lines := p.masks(); len(lines) > 0 {
		set("params", "custom {\n    "+strings.Join(lines, "\n    ")+"\n  }")
	}
	if seed := c.whole("init_weights_seed"); seed > 0 {
		set("seed", fmt.Sprint(seed))
	}
	return "train {\n" + b.String() + "}\n"
}

func (p *plan) optimizer(rate string) string {
	c := p.c
	switch opt := c.text("opt_type"); opt {
	case "sgd":
		return fmt.Sprintf("sgd(lr: %s)", rate)
	case "adamw", "adam_pax": // which corrects the decay in place of the mean: the same numbers
		args := []string{"lr: " + rate}
		for _, a := range []struct {
			key, name string
			def       float64
		}{{"adam_b1", "b1", 0.9}, {"adam_b2", "b2", 0.999}, {"adam_eps", "eps", 1e-8}, {"adam_eps_root", "eps_root", 0}, {"adam_weight_decay", "weight_decay", 1e-4}} {
			if v := c.number(a.key); v != a.def {
				args = append(args, a.name+": "+fraction(v))
			}
		}
		return "adamw(" + strings.Join(args, ", ") + ")"
	default:
		c.fail("opt_type", "opt_type=adamw or opt_type=sgd", "%s: the optimizer is not known", c.is("opt_type"))
		return ""
	}
}

// maxRates bounds the rates that are written one by one.
const maxRates = 1000

// rate is the learning rate. MaxText's falls so that the last step has the final
// value, which it reaches one step before a schedule of as many steps would.
func (p *plan) rate(steps int) string {
	c := p.c
	length := c.whole("learning_rate_schedule_steps")
	if length == -1 {
		length = steps
	}
	peak, end := c.number("learning_rate"), c.number("learning_rate")*c.number("learning_rate_final_fraction")
	if length < steps {
		c.fail("learning_rate_schedule_steps", fmt.Sprintf("steps=%d", length), "%s is less than %s: the rate would be 0 from there on", c.is("learning_rate_schedule_steps"), c.is("steps"))
		return ""
	}
	warmup := int(float64(length) * c.number("warmup_steps_fraction"))
	switch kind := c.text("lr_schedule_type"); kind {
	case "cosine":
		args := []string{fraction(peak)}
		if warmup > 0 {
			args = append(args, fmt.Sprintf("warmup: %d", warmup))
		}
		if decay := length - warmup - 1; decay > 0 {
			args = append(args, fmt.Sprintf("decay: %d", decay), "end: "+fraction(rounded(end)))
		}
		return "cosine(" + strings.Join(args, ", ") + ")"
	case "wsd":
		if steps > maxRates {
			c.fail("lr_schedule_type", "lr_schedule_type=cosine", "%s for more than %d steps", c.is("lr_schedule_type"), maxRates)
			return ""
		}
		return p.stableThenDecay(steps, length, warmup, peak, end)
	default:
		c.fail("lr_schedule_type", "lr_schedule_type=cosine", "%s: want cosine or wsd", c.is("lr_schedule_type"))
		return ""
	}
}

// stableThenDecay is the rates of warm-up, a stable phase and a decay.
func (p *plan) stableThenDecay(steps, length, warmup int, peak, end float64) string {
	c := p.c
	decay := int(float64(length) * c.number("wsd_decay_steps_fraction"))
	rates := make([]string, steps)
	for i := range rates {
		rate := peak
		switch left := i - (length - decay); {
		case i < warmup:
			rate = peak * float64(i) / float64(warmup)
		case left >= 0 && decay > 1 && c.text("wsd_decay_style") == "linear":
			rate = peak + (end-peak)*float64(left)/float64(decay-1)
		case left >= 0 && decay > 1:
			a := 0.5 * (math.Cos(math.Pi*float64(left)/float64(decay-1)) + 1)
			rate = peak*a + end*(1-a)
		case left >= 0:
			rate = end
		}
		rates[i] = fraction(rounded(rate))
	}
	return "[" + strings.Join(rates, ", ") + "]"
}

// rounded is x without the digits that a product adds to it.
func rounded(x float64) float64 {
	var y float64
	fmt.Sscanf(fmt.Sprintf("%.12g", x), "%g", &y)
	return y
}

// types of MaxText by the names that they have here.
var types = map[string]string{"float32": "f32", "bfloat16": "bf16", "float16": "f16", "float64": "f64"}

func (c *config) typeOf(key string) string { return types[c.text(key)] }
