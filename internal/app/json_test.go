package app

import "encoding/json"

// errorOf is the message and the code of an error body in the OpenAI dialect.
func errorOf(body string) (message, code string) {
	var e struct {
		Error struct {
			Message string  `json:"message"`
			Code    *string `json:"code"`
		} `json:"error"`
	}
	if json.Unmarshal([]byte(body), &e) != nil || e.Error.Message == "" {
		return "", ""
	}
	if e.Error.Code != nil {
		code = *e.Error.Code
	}
	return e.Error.Message, code
}
