package audit

// waive marks the findings that somebody decided to live with.
func waive(*Graph, *Report) {}
