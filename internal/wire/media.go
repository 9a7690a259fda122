package wire

import "mime"

// MediaType is the media type of a Content-Type in lower case, without its
// parameters; "" when there is none or it cannot be read.
func MediaType(contentType string) string {
	switch contentType { // as nearly everybody writes it
	case "application/json", "text/event-stream":
		return contentType
	case "application/json; charset=utf-8":
		return "application/json"
	case "text/event-stream; charset=utf-8":
		return "text/event-stream"
	}
	mt, _, err := mime.ParseMediaType(contentType)
	if err != nil {
		return ""
	}
	return mt
}
