package directives

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestExpectedErrors(t *testing.T) {
	got := ExpectedErrors(`// expected-error {{here}}
// expected-error@+2 {{below by two}}
// expected-error @-1 {{above}} expected-error@below {{not a comment of its own}}
x // expected-error-re@above {{a {{.*}} regex}}
`)
	want := []ExpectedError{{1, "here"}, {4, "below by two"}, {2, "above}} expected-error@below {{not a comment of its own"}, {3, "a {{.*}} regex"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
