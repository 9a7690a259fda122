// Package report renders the results of drills: Text for a terminal of 80
// columns, HTML as one file that loads nothing else and runs no script.
//
// It judges nothing: every number is taken from drill.Result or is a ratio,
// a sum or a maximum of numbers there (figures.go).
package report
