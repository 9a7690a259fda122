package admin

import "testing"

// What an operator or a deploy says is shown in logs and terminals as text.
func TestLineIsText(t *testing.T) {
	for in, want := range map[string]string{
		"rollout 7":                      "rollout 7",
		" two\n lines\t":                 "two lines",
		"\x1b[2Jgone\x07\x00":            "[2Jgone",
		"a\u009b31mb":                    "a31mb",
		"safe \u202etxt.exe\u2066":       "safe txt.exe",
		"größer, 日本":                     "größer, 日本",
		"\xff bytes":                     "\ufffd bytes",
		"\u00a0no\u2028break\u00a0space": "no break space",
	} {
		if got := line(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}
