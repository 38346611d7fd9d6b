package tensorfile

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
)

// inWords is err, of package json, without the types of Go: where the text is no
// JSON, or which field has which value, and what is wanted of it.
func inWords(err error) error {
	var text *json.SyntaxError
	var value *json.UnmarshalTypeError
	switch {
	case errors.As(err, &text):
		return fmt.Errorf("no JSON at byte %d: %w", text.Offset, err)
	case errors.As(err, &value) && value.Field != "":
		return fmt.Errorf("%s: found a JSON %s, want %s", value.Field, value.Value, wantedOf(value.Type))
	case errors.As(err, &value):
		return fmt.Errorf("found a JSON %s, want %s", value.Value, wantedOf(value.Type))
	}
	return err
}

// wantedOf is what a value of type t is in JSON.
func wantedOf(t reflect.Type) string {
	switch t.Kind() {
	case reflect.String:
		return "a string"
	case reflect.Slice:
		return "a list"
	case reflect.Map, reflect.Struct:
		return "an object"
	}
	return "a whole number that fits 64 bits"
}
