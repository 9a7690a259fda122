package library

import "net/http"

type webPage struct{ path string }

func pages() []webPage { return nil }

func (s *server) page(webPage) http.Handler { return nil }
