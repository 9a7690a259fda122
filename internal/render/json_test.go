package render

import (
	"bytes"
	"encoding/json"
	"testing"
	"testing/iotest"

	"io"
)

// TestEscapedJSON: what a terminal would act on is escaped, however the text is
// cut into writes, and reads as what it was.
func TestEscapedJSON(t *testing.T) {
	want := "a\u009b31m\x7f\u202e\U000e0001é世\u2028<&>"
	var once bytes.Buffer
	if err := indented(&once, []string{want}); err != nil {
		t.Fatal(err)
	}
	var got []string
	if err := json.Unmarshal(once.Bytes(), &got); err != nil || got[0] != want {
		t.Errorf("%q, %v", got, err)
	}
	var bytewise bytes.Buffer
	e := &escaped{to: &bytewise}
	if _, err := io.Copy(struct{ io.Writer }{e}, iotest.OneByteReader(bytes.NewReader([]byte(`["`+want+`"]`)))); err != nil {
		t.Fatal(err)
	}
	if err := e.end(); err != nil {
		t.Fatal(err)
	}
	if w := "[\"a\\u009b31m\\u007f\\u202e\\udb40\\udc01é世\u2028<&>\"]\n"; bytewise.String() != w {
		t.Errorf("%q, want %q", bytewise.String(), w)
	}
}
