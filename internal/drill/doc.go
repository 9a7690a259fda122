// Package drill replays an outage in virtual time against several contenders
// side by side: this router as it is shipped, its own HTTP stack included, and
// models of what people use in its place. The clients and providers around
// them are models with one seed.
//
// A Scenario is data (scenario.go). Play (play.go) runs it and returns a Result
// (result.go), with every criterion judged.
package drill
